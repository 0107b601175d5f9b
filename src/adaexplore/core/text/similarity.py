"""Comparison of texts: the nearest of several, and the first difference of two."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TypeVar

Name = TypeVar("Name")
_EXCERPT_CHARS = 80
_CHARS_BEFORE = 20


def nearest(texts: Mapping[Name, str], text: str) -> tuple[Name, float]:
    """Return the name of the text most similar to `text` and the similarity by lines, 0 to 1.

    The first of equals wins. Raises `ValueError` if `texts` is empty.
    """
    lines = text.split("\n")
    similarity = {name: _similarity(other.split("\n"), lines) for name, other in texts.items()}
    name = max(similarity, key=lambda name: similarity[name])
    return name, similarity[name]


def first_difference(recorded: str, now: str, verb: str) -> str:
    """Describe the first different line: `line 7: recorded 'a', asked 'b'` (`verb` is "asked")."""
    pairs = itertools.zip_longest(recorded.split("\n"), now.split("\n"), fillvalue="(the end)")
    for number, (old, new) in enumerate(pairs, 1):
        if old != new:
            prefix = _common_prefix(old, new)
            return (
                f"line {number}: recorded {_excerpt(old, prefix)}, {verb} {_excerpt(new, prefix)}"
            )
    return "nothing"


def _similarity(recorded: list[str], asked: list[str]) -> float:
    return SequenceMatcher(None, recorded, asked, autojunk=False).ratio()


def _excerpt(line: str, place: int) -> str:
    """Return the line, cut to the surroundings of a place if it is long."""
    if len(line) <= _EXCERPT_CHARS:
        return repr(line)
    start = max(0, min(place - _CHARS_BEFORE, len(line) - _EXCERPT_CHARS))
    before, after = "…" if start else "", "…" if start + _EXCERPT_CHARS < len(line) else ""
    return repr(f"{before}{line[start : start + _EXCERPT_CHARS]}{after}")


def _common_prefix(old: str, new: str) -> int:
    """Return the length of the common prefix of two lines."""
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
