"""One listing of a rule's two programs, as a person reviews them: a diff with every line.

A line of the witness alone begins with "-", a line of the remedy alone with "+", and a line of both
with a space. A second space follows, then the line. Empty lines of both programs stay empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher


def listing(witness: str, remedy: str) -> str:
    """Return the listing of two programs; `programs` is its inverse."""
    return "\n".join(_marked(witness.split("\n"), remedy.split("\n")))


def programs(text: str) -> tuple[str, str]:
    """Return the witness and the remedy of a listing.

    Raises `ValueError`, in one line, for text that is no listing.
    """
    witness: list[str] = []
    remedy: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        mark, space, code = line[:1] or " ", line[1:2], line[2:]
        if mark not in "-+ " or space not in ("", " "):
            raise ValueError(
                f"line {number} of its programs is to begin with '- ', '+ ' or two spaces"
            )
        if mark != "+":
            witness.append(code)
        if mark != "-":
            remedy.append(code)
    return "\n".join(witness), "\n".join(remedy)


def _marked(witness: list[str], remedy: list[str]) -> Iterator[str]:
    matcher = SequenceMatcher(None, witness, remedy, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            yield from (_line(" ", line) for line in witness[start:end])
        else:
            yield from (_line("-", line) for line in witness[start:end])
            yield from (_line("+", line) for line in remedy[first:last])


def _line(mark: str, line: str) -> str:
    return f"{mark} {line}" if line else mark.strip()
