"""Location of a patch's lines in a source."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORD = re.compile(r"\w+|[^\w\s]")
_LIKENESS = 0.9
"""Least similarity of an old block and its match."""
_LEAD = 0.05
"""Least lead in similarity of the match over any other place."""
_FUZZY_CHARACTERS = 30  # at least: in a shorter text, one letter makes another statement
_FUZZY_LINES = 400
_LETTERED_WIDTH = 160  # longer lines, and
_LETTERED_LINES = 20  # further lines, are not compared by letter: it takes too long
_REGIONS = 6


class Text:
    """Lines compared without blank lines and without space around the others."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.places = [at for at, line in enumerate(lines) if line.strip()]
        self.bare = [lines[at].strip() for at in self.places]

    def indent(self, index: int) -> str:
        """Return the indentation of `bare[index]`."""
        line = self.lines[self.places[index]]
        return line[: len(line) - len(line.lstrip())]


@dataclass(frozen=True, slots=True)
class LineMatch:
    """Lines `first` up to `end` of a source.

    Their indentation is that of the matched block with the prefix `less` replaced by `more`. `note`
    is empty for an exact match.
    """

    first: int
    end: int
    less: str = ""
    more: str = ""
    note: str = ""
    likeness: float = 1.0

    def indented(self, line: str) -> str:
        """Return a new line with the indentation of the source."""
        if not line.strip() or not line.startswith(self.less):
            return line
        return self.more + line.removeprefix(self.less)


def exact(lines: list[str], old: list[str]) -> list[LineMatch]:
    """Return the places where the source's lines equal the block."""
    size = len(old)
    starts = (at for at in range(len(lines) - size + 1) if lines[at : at + size] == old)
    return [LineMatch(at, at + size) for at in starts]


def tolerant(source: Text, old: Text) -> list[LineMatch]:
    """Return the places that are equal except for blank space and one shift of indentation."""
    matches = []
    size = len(old.bare)
    for start in range(len(source.bare) - size + 1):
        if source.bare[start : start + size] == old.bare:
            shifts = {_shift(old.indent(at), source.indent(start + at)) for at in range(size)}
            if len(shifts) == 1:
                [(less, more)] = shifts
                first, last = source.places[start], source.places[start + size - 1]
                note = "but for indentation" if less or more else "but for blank space"
                matches.append(LineMatch(first, last + 1, less, more, note))
    return matches


def fuzzy(source: Text, old: Text) -> list[LineMatch]:
    """Return the nearly equal place; several if none is clearly more similar than others.

    Blocks of a few letters match nowhere, and neither do blocks of several hundred lines.
    """
    if len(old.bare) > _FUZZY_LINES or sum(map(len, old.bare)) < _FUZZY_CHARACTERS:
        return []
    matches = alike(source, old)
    if not matches or matches[0].likeness < _LIKENESS:
        return []
    return [match for match in matches if match.likeness > matches[0].likeness - _LEAD]


def alike(source: Text, old: Text) -> list[LineMatch]:
    """Return similar places that do not overlap, the most similar first."""
    matches = [
        max(_aligned(source, old, start), key=lambda match: match.likeness)
        for start in _regions(source.bare, old.bare)
    ]
    apart: list[LineMatch] = []
    for match in sorted(matches, key=lambda match: -match.likeness):
        if all(match.end <= other.first or other.end <= match.first for other in apart):
            apart.append(match)
    return apart


def _regions(source: list[str], old: list[str]) -> list[int]:
    """Return the starts of the windows that share the most words with the old block."""
    size = min(len(old), len(source))
    if not size:
        return []
    wanted = Counter(word for line in old for word in _WORD.findall(line))
    words = [[word for word in _WORD.findall(line) if word in wanted] for line in source]
    held: Counter[str] = Counter()
    shared = 0
    scores = []
    for end, entering in enumerate(words, 1):
        for word in entering:
            held[word] += 1
            shared += held[word] <= wanted[word]
        if end >= size:
            scores.append(shared)
            for word in words[end - size]:
                shared -= held[word] <= wanted[word]
                held[word] -= 1
    regions: list[int] = []
    for start in sorted(range(len(scores)), key=lambda start: -scores[start]):
        if all(abs(start - other) > size // 2 for other in regions):
            regions.append(start)
        if len(regions) == _REGIONS:
            break
    return regions


def _aligned(source: Text, old: Text, start: int) -> list[LineMatch]:
    """Return the lines at `start`, and those that the lines shared with `old` point at."""
    size = len(old.bare)
    low = max(0, start - size // 10 - 2)
    high = min(len(source.bare), start + size + size // 10 + 2)
    spans = [(start, min(start + size, high))]
    matcher = SequenceMatcher(None, old.bare, source.bare[low:high], autojunk=False)
    *blocks, _ = matcher.get_matching_blocks()
    if blocks:
        begin = low + max(0, blocks[0].b - blocks[0].a)
        spans.append((begin, min(high, low + blocks[-1].b + size - blocks[-1].a)))
    return [_compared(source, old, *span) for span in spans]


def _compared(source: Text, old: Text, start: int, end: int) -> LineMatch:
    window = source.bare[start:end]
    matcher = SequenceMatcher(None, old.bare, window, autojunk=False)
    shifts: Counter[tuple[str, str]] = Counter()
    common = 0.0
    lettered = 0
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag in ("equal", "replace"):
            pairs = zip(range(old_start, old_end), range(new_start, new_end), strict=False)
            for there, here in pairs:
                if tag == "equal":
                    common += len(window[here])
                elif lettered < _LETTERED_LINES:
                    common += _letters(old.bare[there], window[here])
                    lettered += 1
                shifts[_shift(old.indent(there), source.indent(start + here))] += 1
    likeness = 2 * common / sum(map(len, old.bare + window))
    [((less, more), _)] = shifts.most_common(1)
    first, last = source.places[start], source.places[end - 1]
    return LineMatch(first, last + 1, less, more, f"by {math.floor(100 * likeness)} %", likeness)


def _letters(one: str, other: str) -> float:
    """Return the number of characters that two lines share."""
    if max(len(one), len(other)) > _LETTERED_WIDTH:
        return 0
    ratio = SequenceMatcher(None, one, other, autojunk=False).ratio()
    return ratio * (len(one) + len(other)) / 2


def _shift(old: str, new: str) -> tuple[str, str]:
    """Return the prefix to remove from an indentation, and the one to add, to get another."""
    same = 0
    while same < min(len(old), len(new)) and old[-1 - same] == new[-1 - same]:
        same += 1
    return old[: len(old) - same], new[: len(new) - same]
