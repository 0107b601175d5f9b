"""Where in a candidate's source an exception or a compiler's error arose.

`describe` runs in the candidate's process, where the exception is. What it returns is plain data,
which `fault_of` reads in the judge without trusting it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adaexplore.evaluation import Fault

_TRACEBACK_CHARS = 20_000
_MESSAGE_CHARS = 500
_COMPILER_ERROR = re.compile(
    r"^(?P<file>[^\s:(\"']+)"
    r"(?::(?P<line>\d+)(?::\d+)?:|\((?P<nvcc>\d+)\):)"  # GCC, Clang and MLIR; nvcc
    r"\s*(?:fatal )?error:?\s*(?P<text>.*)$",
    re.MULTILINE,
)


def describe(error: BaseException, folder: Path) -> dict[str, Any]:
    """An exception as plain data: its classes, its root's text, and its places in the source.

    `folder` holds the candidate's own file. Triton's errors carry their place with them: the text
    of the kernel and a line in it. Those of a helper's caller follow in `__cause__`.
    """
    chain = list(_causes(error))
    root = _most_telling(chain)
    places = [place for link in reversed(chain) for place in _places(link, folder)]
    return {
        "types": [c.__name__ for c in (*type(error).__mro__, *type(root).__mro__)],
        "type": type(root).__name__,
        "message": str(root),
        "places": places[:50],
        "traceback": _traceback(error, folder)[-_TRACEBACK_CHARS:],
    }


def fault_of(error: Mapping[str, Any], source: str, log: str = "") -> Fault:
    """The fault that `describe` described, placed in the candidate's `source`.

    A C++ compiler's first error, or the one that MLIR wrote to the process's `log`, is preferred to
    the exception that followed.
    """
    lines = source.splitlines()
    kind, message = str(error["type"]), str(error["message"])
    for text in (message, log if "PassManager::run failed" in message else ""):
        found = _COMPILER_ERROR.search(text)
        if found:
            return _compiler_fault(kind, found, text, lines)
    for place in error.get("places", ()):
        line, frame = _resolved(place, lines)
        if line:
            return Fault(kind, headline(message), line, lines[line - 1].strip(), frame)
    return Fault(kind, headline(message))


def headline(message: str) -> str:
    """The line of a message that says most.

    A compiler's first "error:"; of Triton's, which begin with a bare position and an excerpt of the
    kernel, what follows the excerpt; else the first line.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    errors = [line for line in lines if "error:" in line]
    triton = lines[-1:] if re.fullmatch(r"at \d+:\d+:", lines[0]) else []
    return (errors or triton or lines)[0][:_MESSAGE_CHARS]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it was raised from, down to the root."""
    link: BaseException | None = error
    for _ in range(50):  # a candidate can tie a knot into its own chain
        if link is None:
            return
        yield link
        link = link.__cause__


def _traceback(error: BaseException, folder: Path) -> str:
    """The traceback from the candidate's own first frame on; the callers before it are ours."""
    trace = error.__traceback__
    while trace and Path(trace.tb_frame.f_code.co_filename).parent != folder:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _most_telling(chain: Sequence[BaseException]) -> BaseException:
    """The one that quotes a compiler's error, else the root, else what has any words at all."""
    quoting = [link for link in chain if _COMPILER_ERROR.search(str(link))]
    with_words = [link for link in chain if str(link).strip()]
    return (quoting or with_words or chain)[-1]


def _places(error: BaseException, folder: Path) -> list[dict[str, Any]]:
    """The places one exception names, innermost first."""
    node, kernel = getattr(error, "node", None), getattr(error, "src", None)
    line = getattr(node, "lineno", None)
    if isinstance(kernel, str) and isinstance(line, int):
        return [{"line": line, "frame": "", "kernel": kernel}]
    if isinstance(error, SyntaxError) and Path(error.filename or "").parent == folder:
        return [{"line": error.lineno or 0, "frame": "", "kernel": ""}]
    frames = traceback.extract_tb(error.__traceback__)
    return [
        {"line": frame.lineno or 0, "frame": frame.name, "kernel": ""}
        for frame in reversed(frames)
        if Path(frame.filename).parent == folder
    ]


def _resolved(place: Any, lines: list[str]) -> tuple[int, str]:
    """The line in the candidate's source (0 if it is not there) and the function's name."""
    match place:
        case {"line": int(line), "frame": str(frame), "kernel": ""} if 0 < line <= len(lines):
            return line, frame
        case {"line": int(line), "kernel": str(kernel)} if kernel:
            name = re.match(r"\s*def\s+(\w+)", kernel)
            start = _find_block(kernel.splitlines(), lines)
            inside = start and 0 < line <= len(kernel.splitlines())
            return (start + line - 1 if inside else 0), name[1] if name else ""
    return 0, ""


def _find_block(block: list[str], lines: list[str]) -> int:
    """The line, from 1, at which `block` begins whatever its indentation; 0 if it does not."""
    wanted = [line.strip() for line in block]
    stripped = [line.strip() for line in lines]
    for start in range(len(stripped) - len(wanted) + 1):
        if stripped[start : start + len(wanted)] == wanted:
            return start + 1
    return 0


def _compiler_fault(kind: str, found: re.Match[str], text: str, lines: list[str]) -> Fault:
    """The fault a compiler reported, its line looked up in what the candidate embeds."""
    at = int(found["line"] or found["nvcc"])
    frame = f"{Path(found['file']).name}:{at}"
    quoted = re.search(rf"^\s*{at} \|(.*)$", text[found.end() :], re.MULTILINE)
    code = quoted[1].strip() if quoted else ""
    matching = [i for i, line in enumerate(lines, 1) if code and line.strip() == code]
    if not matching and found["file"].endswith(".py") and at <= len(lines):
        matching = [at]
    line = matching[0] if matching else 0
    return Fault(
        kind, found["text"][:_MESSAGE_CHARS], line, lines[line - 1].strip() if line else code, frame
    )
