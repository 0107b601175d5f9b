"""Outlines in a model's reply: a different structure for each step that is asked for at once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adaexplore.core.protocols.proposer import Outline
from adaexplore.llm.code import ReplyError
from adaexplore.propose.model.answers import one_line

_BEGINNINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r" {0,3}(?:#+ *)?\**(?:(?:outline|structure|option) *#?)?\d+\**[.):]\** +(.+)",
        r" {0,3}#+ +(.+)",
        r" {0,3}\*\*(.+)",
        r" {0,3}[-*•] +(.+)",
    )
)
"""The first line of an outline: numbered, a heading, bold, or a bullet."""
_FENCE = re.compile(r"\s*(```|~~~)")
_MARKS = re.compile(r"\*\*|`")
_LABEL = re.compile(r"(?:name|outline|structure) *: *", re.IGNORECASE)
_NAMED = re.compile(r"(.{1,80}?)(?:\s*:|\s[–—-])(?:\s+|$)(.*)")
_NAME_CHARS = 80
_TEXT_CHARS = 1000


def read_outlines(reply: str, most: int) -> tuple[Outline, ...]:
    """Return the outlines of the list in a reply, at most `most`, each name once.

    Raises `ReplyError` for a reply without a list.
    """
    lists = [_items(reply, beginning) for beginning in _BEGINNINGS]
    found = next((items for least in (2, 1) for items in lists if len(items) >= least), [])
    outlines: dict[str, Outline] = {}
    for outline in map(_outline, found):
        outlines.setdefault(outline.name.casefold(), outline)
    if not outlines:
        raise ReplyError(
            "it has no list of structures. Number them; begin each with a short name and a colon."
        )
    return tuple(outlines.values())[:most]


def _items(reply: str, beginning: re.Pattern[str]) -> list[list[str]]:
    """Return the lines of every item, without those of code."""
    items: list[list[str]] = []
    for line in _prose(reply.splitlines()):
        if begun := beginning.match(line):
            items.append([begun[1]])
        elif items:
            items[-1].append(line)
    return items


def _prose(lines: Iterable[str]) -> Iterable[str]:
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield line


def _outline(lines: list[str]) -> Outline:
    first, *rest = (_MARKS.sub("", line).strip() for line in lines)
    first = _LABEL.sub("", first, count=1)
    named = _NAMED.match(first)
    name, begun = named.groups() if named else (first, first if len(first) > _NAME_CHARS else "")
    return Outline(one_line(name, _NAME_CHARS), one_line(" ".join([begun, *rest]), _TEXT_CHARS))
