"""Patches in a language model's reply, and their application to a source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.llm.code import ReplyError, normalised, shown
from adaexplore.propose.model.matching import LineMatch, Text, alike, exact, fuzzy, tolerant

FORMAT = """\
<<<<<<< OLD
exact lines of the source
=======
the lines to put in their place
>>>>>>> NEW"""
"""The form of a patch, as prompts request it."""

_START = re.compile(r"([ \t]*)(<{5,})[ \t]*+(?:OLD|SEARCH|ORIGINAL)?[ \t]*", re.IGNORECASE)
_MIDDLE = re.compile(r"[ \t]*={5,}[ \t]*")
_END = re.compile(r"[ \t]*>{5,}[ \t]*+(?:NEW|REPLACE|UPDATED)?[ \t]*", re.IGNORECASE)

_MAX_PATCHES = 100
_RESEMBLANCE = 0.3
_COMPARED_LINES = 400
_SHOWN_LINES = 12
_SHOWN_PLACES = 3


@dataclass(frozen=True, slots=True)
class Patch:
    """Whole lines of a source, and the lines that replace them: none if `new` is empty."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Patched:
    """The patched source, and a note for each patch that did not match exactly."""

    source: str
    notes: tuple[str, ...]


def parse_patches(text: str) -> list[Patch]:
    """Return the patches in a reply, at least one, in order.

    The format is `FORMAT`, fenced or not. The words may be SEARCH and REPLACE or ORIGINAL and
    UPDATED, or be missing; markers have five characters or more. Raises `ReplyError` for a reply
    without patches, for a patch without one of its markers and for an empty old block.
    """
    lines = normalised(text).split("\n")
    patches: list[Patch] = []
    opened: tuple[int, re.Match[str]] | None = None
    for at, line in enumerate(lines):
        start, ends = _START.fullmatch(line), _END.fullmatch(line)
        if start:
            if opened:
                break
            opened = at, start
        elif ends and opened:
            patches.append(_patch(lines, *opened, at, len(patches) + 1))
            opened = None
        elif ends:
            raise _malformed(f"Line {at + 1} of the reply ends a patch that does not begin")
    if opened:
        raise _malformed(f"The patch that begins at line {opened[0] + 1} of the reply has no end")
    if not patches:
        raise _malformed("The reply holds no patch")
    if len(patches) > _MAX_PATCHES:
        raise ReplyError(
            f"The reply holds {len(patches)} patches; send at most {_MAX_PATCHES}, longer ones."
        )
    return patches


def apply_patches(source: str, patches: Sequence[Patch]) -> Patched:
    """Return `source` with all `patches` applied, each to the result of the ones before it.

    An old block stands for whole lines: lines equal to it; else lines equal except for blank lines,
    trailing spaces and one difference in indentation, which the new lines then get too; else the
    only lines that are nearly equal. Lines of the result end with line feeds. Raises `ReplyError`
    if a patch has no old lines, matches nowhere or in several places, or if all patches together
    change nothing.
    """
    before = lines = _lines(source)
    notes = []
    for number, patch in enumerate(patches, 1):
        match, new = _match(lines, patch, number)
        if match.note:
            notes.append(f"patch {number}: lines {match.first + 1}-{match.end} match {match.note}")
        lines = [*lines[: match.first], *map(match.indented, new), *lines[match.end :]]
    if lines == before:
        raise ReplyError("The patches change nothing. Send patches whose NEW differs from OLD.")
    return Patched("".join(f"{line}\n" for line in lines), tuple(notes))


def _match(lines: list[str], patch: Patch, number: int) -> tuple[LineMatch, list[str]]:
    """Return the only match of a patch, and its new lines."""
    old, new = _lines(patch.old), _lines(patch.new)
    if not any(line.strip() for line in old):
        raise _empty(number)
    found = exact(lines, old)
    if not found:
        old, new = _without_margins(old, new)
        source, wanted = Text(lines), Text(old)
        found = tolerant(source, wanted) or fuzzy(source, wanted)
        if not found:
            raise _failure(number, "matches nowhere", _nearest(source, wanted))
    if len(found) > 1:
        raise _failure(number, "is ambiguous", _places(lines, found))
    return found[0], new


def _without_margins(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Return both without the blank lines at the ends of the old block."""
    for _ in range(2):  # one end, then the other
        blank = _blank(old)
        old, new = old[blank:][::-1], new[min(blank, _blank(new)) :][::-1]
    return old, new


def _blank(lines: list[str]) -> int:
    """Return the number of leading blank lines."""
    return next((at for at, line in enumerate(lines) if line.strip()), len(lines))


def _lines(text: str) -> list[str]:
    lines = normalised(text).split("\n")
    return lines if lines[-1] else lines[:-1]


def _patch(lines: list[str], start: int, marker: re.Match[str], end: int, number: int) -> Patch:
    """Return the patch between two markers.

    Its text may contain lines of `=` if the three markers differ from them in length or
    indentation.
    """
    rows = range(start + 1, end)
    middles = [at for at in rows if _MIDDLE.fullmatch(lines[at])]
    if len(middles) > 1:
        middle = marker[1] + "=" * len(marker[2])
        middles = [at for at in middles if lines[at].rstrip() == middle]
    if len(middles) != 1:
        raise _malformed(
            f"Patch {number} does not have exactly one line of ======= between its other markers "
            "(if its text has such lines, write all three markers longer)"
        )
    [middle_at] = middles
    old = "".join(f"{line}\n" for line in lines[start + 1 : middle_at])
    new = "".join(f"{line}\n" for line in lines[middle_at + 1 : end])
    if not old.strip():
        raise _empty(number)
    return Patch(old, new)


def _empty(number: int) -> ReplyError:
    return _malformed(
        f"The OLD part of patch {number} is empty (to add lines, put the line before them there, "
        "and repeat it in NEW)"
    )


def _malformed(what: str) -> ReplyError:
    return ReplyError(f"{what}. Send all patches again, each in this form:\n{FORMAT}")


def _failure(number: int, what: str, where: str) -> ReplyError:
    state = " as the patches before it leave it" if number > 1 else ""
    return ReplyError(
        f"Patch {number} {what} in the source{state}. {where}\n"
        "No patch was made: send all of them again, with this one mended."
    )


def _places(lines: list[str], matches: Sequence[LineMatch]) -> str:
    """Return the places where an ambiguous patch matches, each with the line before."""
    starts = sorted(match.first for match in matches)
    more = f" and {len(starts) - _SHOWN_PLACES} more" if len(starts) > _SHOWN_PLACES else ""
    shown_starts = starts[:_SHOWN_PLACES]
    places = ", ".join(str(start + 1) for start in shown_starts)
    views = "\n...\n".join(_view(lines, max(0, start - 1), start + 1) for start in shown_starts)
    return (
        f"It matches at lines {places}{more}; OLD needs lines that only one of them has:\n{views}"
    )


def _nearest(source: Text, old: Text) -> str:
    """Return the lines most similar to a patch that matches nowhere, from the first difference."""
    candidates = alike(source, Text(old.lines[:_COMPARED_LINES]))
    if not candidates or candidates[0].likeness < _RESEMBLANCE:
        return "Nothing there resembles its OLD; copy OLD from the source."
    nearest = candidates[0]
    there = {line.strip() for line in source.lines[nearest.first : nearest.end]}
    unlike = next((at for at, line in enumerate(old.bare) if line not in there), None)
    lack = "" if unlike is None else f", and lack `{shown(old.bare[unlike])}`"
    first = max(nearest.first, min(nearest.first + (unlike or 0) - 2, nearest.end - _SHOWN_LINES))
    view = _view(source.lines, first, min(nearest.end, first + _SHOWN_LINES))
    return f"The nearest lines are these{lack}; copy OLD from the source:\n{view}"


def _view(lines: Sequence[str], first: int, end: int) -> str:
    """Return lines with their numbers."""
    return "\n".join(f"{at + 1:4}| {shown(lines[at])}" for at in range(first, end))
