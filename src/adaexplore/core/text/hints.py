"""Hints for names that are not known."""

from __future__ import annotations

import difflib
from collections.abc import Collection


def near(name: str, known: Collection[str]) -> str:
    """Return a hint for an unknown name: the known ones that resemble it, or else all."""
    found = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(found)}?" if found else f"known: {', '.join(known)}"
