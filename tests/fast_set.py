"""The fast set: of many cases alike, a few that show their kind; the rest are slow."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def of_which_fast(cases: Iterable[str], *fast: str) -> list:
    """Return parameters for all cases, with every case but the `fast` ones marked `slow`."""
    names = list(cases)
    assert set(fast) <= set(names), f"no such case: {set(fast) - set(names)}"
    return [
        pytest.param(name, id=name, marks=() if name in fast else pytest.mark.slow)
        for name in names
    ]
