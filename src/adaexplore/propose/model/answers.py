"""Sources in a model's replies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.llm.code import ReplyError, check_module, extract_code
from adaexplore.propose.model.patches import Patched, apply_patches, parse_patches

_NOTE_CHARS = 300
_FENCED = re.compile(r"^\s*(```|~~~|<{5,}|={5,}|>{5,})")

ReadReply = Callable[[str], Patched]
"""Read a source from a reply's text, or raise `ReplyError`."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A source, the conversation's last prompt and reply, and a note in one line.

    `plan` has the items that small steps carry out later.
    """

    source: str
    prompt: Prompt
    reply: Reply
    note: str
    plan: tuple[str, ...] = ()


def read_answer(read: ReadReply, prompt: Prompt, reply: Reply) -> SourceAnswer:
    """Return the answer in a reply; raise `ReplyError` if there is none."""
    made = read(reply.text)
    return SourceAnswer(made.source, prompt, reply, "; ".join([_note(reply.text), *made.notes]))


def whole_module(text: str) -> Patched:
    """Return the whole module in a reply."""
    return Patched(extract_code(text), ())


def patching(source: str) -> ReadReply:
    """Return a reader of replies with patches to `source`, or with a whole new module."""

    def read(text: str) -> Patched:
        try:
            patched = apply_patches(source, parse_patches(text))
        except ReplyError as error:
            try:
                whole = whole_module(text)
            except ReplyError:
                raise error from None
            if whole.source == source:
                raise
            return whole
        check_module(patched.source)
        return patched

    return read


def keeping(source: str) -> ReadReply:
    """Return a reader of replies with patches; the source is kept where they do not apply."""

    def read(text: str) -> Patched:
        try:
            return apply_patches(source, parse_patches(text))
        except ReplyError as error:
            return Patched(source, (f"unchanged: {one_line(str(error))}",))

    return read


def _note(text: str) -> str:
    """Return the first line of prose in a reply."""
    fenced = False
    for line in text.splitlines():
        if _FENCED.match(line):
            fenced = not fenced
        elif not fenced and line.strip():
            return one_line(line)
    return ""


def one_line(text: str, most: int = _NOTE_CHARS) -> str:
    """Return a text in one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
