"""The README and the tutorials run as they stand, and print what they show."""

from pathlib import Path

import pytest
from runnable import run

from fast_set import of_which_fast

ROOT = Path(__file__).parents[2]
PAGES = {
    page.stem: page
    for page in [
        ROOT / "README.md",
        ROOT / "docs/architecture.md",
        ROOT / "docs/models-whole.md",
        ROOT / "docs/shipping.md",
        *sorted((ROOT / "docs/tutorials").glob("*.md")),
    ]
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", of_which_fast(PAGES))
def test_a_page_prints_what_it_shows(page, tmp_path):
    assert run(PAGES[page], tmp_path) == []
