"""The README and the tutorials run as they stand, and print what they show."""

from pathlib import Path

import pytest
from runnable import run

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/architecture.md",
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_it_shows(page, tmp_path):
    assert run(page, tmp_path) == []
