"""Texts compared: which of several is nearest to another, and where the two part."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TypeVar

Name = TypeVar("Name")
_SHOWN = 80
_BEFORE = 20


def nearest(texts: Mapping[Name, str], text: str) -> tuple[Name, float]:
    """The name of the text most like `text`, the first of equals, and how alike: 0 to 1, by lines.

    Raises `ValueError` if there are none.
    """
    lines = text.split("\n")
    likeness = {name: _likeness(other.split("\n"), lines) for name, other in texts.items()}
    name = max(likeness, key=lambda name: likeness[name])
    return name, likeness[name]


def first_difference(recorded: str, now: str, verb: str) -> str:
    """The first line in which two texts differ: `line 7: recorded 'a', asked 'b'`, by `verb`."""
    pairs = itertools.zip_longest(recorded.split("\n"), now.split("\n"), fillvalue="(the end)")
    for number, (old, new) in enumerate(pairs, 1):
        if old != new:
            same = _in_common(old, new)
            return f"line {number}: recorded {_shown(old, same)}, {verb} {_shown(new, same)}"
    return "nothing"


def _likeness(recorded: list[str], asked: list[str]) -> float:
    return SequenceMatcher(None, recorded, asked, autojunk=False).ratio()


def _shown(line: str, place: int) -> str:
    """The line, or of a long one what stands around a place."""
    if len(line) <= _SHOWN:
        return repr(line)
    start = max(0, min(place - _BEFORE, len(line) - _SHOWN))
    before, after = "…" if start else "", "…" if start + _SHOWN < len(line) else ""
    return repr(f"{before}{line[start : start + _SHOWN]}{after}")


def _in_common(old: str, new: str) -> int:
    """How many characters two lines begin with alike."""
    return sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    )
