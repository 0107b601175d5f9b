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

from adaexplore.core.evaluation import Fault

_TRACEBACK_CHARS = 20_000
_MESSAGE_CHARS = 500
BUILD_FAILED = "Error building extension"
"""How PyTorch begins to tell that an extension could not be built."""

_COMPILER_ERROR = re.compile(
    r"^(?P<file>[^\s:(\"']+)"
    r"(?::(?P<line>\d{1,9})(?::\d+)?:|\((?P<nvcc>\d{1,9})\):)"  # GCC, Clang and MLIR; nvcc
    r"\s*(?:fatal )?error:?\s*(?P<text>.*)$",
    re.MULTILINE,
)
_LED_THERE = (
    re.compile(r"\bat line (?P<line>\d{1,9}) of (?P<file>\S+)$", re.MULTILINE),  # nvcc
    re.compile(r"\bfrom (?P<file>[^\s:]+):(?P<line>\d{1,9})[:,]"),  # GCC, of what includes a file
)
_TOOL_ERROR = re.compile(
    r"^(?P<tool>ptxas|nvlink|nvcc|(?:/\S{1,200}/)?ld)\b"
    r"(?:.{0,300}?(?:error|fatal)\s{0,9}:|.{0,300}?(?=undefined reference))\s*(?P<text>.+)$",
    re.MULTILINE,
)
_NAMED_KERNEL = re.compile(r"function '(?:_Z(?P<length>\d{1,4}))?(?P<name>\w+)'")
_PROCESSED = re.compile(
    r'^ *File "(?P<file>[^"]+)", line (?P<line>\d{1,9}), in (?P<frame>\w+)$', re.MULTILINE
)
_AROUND = 2  # lines of a generated file, by which a line is found that occurs twice


def describe(error: BaseException, folder: Path) -> dict[str, Any]:
    """An exception as plain data: its classes, its root's text, and its places in the source.

    `folder` holds the candidate's own file. Triton's errors carry their place with them: the text
    of the kernel and a line in it; those of a helper's caller follow in `__cause__`. Helion's texts
    name the lines that it was processing.
    """
    chain = list(_causes(error))
    root = _most_telling(chain)
    places = [place for link in reversed(chain) for place in _places(link, folder)]
    return {
        "types": [c.__name__ for c in (*type(error).__mro__, *type(root).__mro__)],
        "type": type(root).__name__,
        "message": str(root),
        "places": places[:50],
        "excerpt": _excerpt(str(root), folder),
        "traceback": _traceback(error, folder)[-_TRACEBACK_CHARS:],
    }


def fault_of(error: Mapping[str, Any], source: str, log: str = "") -> Fault:
    """The fault that `describe` described, placed in the candidate's `source`.

    The first error of a C++ compiler or of the tools behind it, or the one that MLIR wrote to the
    process's `log`, is preferred to the exception that followed.
    """
    lines = source.splitlines()
    kind, message = str(error["type"]), str(error["message"])
    for text in (message, log if "PassManager::run failed" in message else ""):
        found = _COMPILER_ERROR.search(text)
        if found:
            return _compiler_fault(kind, found, text, lines, error.get("excerpt"))
    found = _TOOL_ERROR.search(message)
    if found:
        return _tool_fault(kind, found, lines)
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
    quoting = [link for link in chain if _quotes_compiler(str(link))]
    with_words = [link for link in chain if str(link).strip()]
    return (quoting or with_words or chain)[-1]


def _quotes_compiler(text: str) -> bool:
    return BUILD_FAILED in text or bool(_COMPILER_ERROR.search(text))


def _excerpt(message: str, folder: Path) -> dict[str, Any]:
    """The line that a compiler's first error points at in a file under `folder`, with those around.

    Of an error in somebody's header, the line that led there. In the form of a place; empty where
    no such file is named.
    """
    first = _COMPILER_ERROR.search(message)
    if first is None:
        return {}
    named = [(first["file"], _line_of(first))]
    named += [(m["file"], int(m["line"])) for how in _LED_THERE for m in how.finditer(message)]
    for name, line in named:
        file, at = Path(name).resolve(), line - 1
        if file.is_relative_to(folder) and file.is_file():
            lines = file.read_text(errors="replace").splitlines()
            start = max(at - _AROUND, 0)
            block = "\n".join(lines[start : at + _AROUND + 1])
            return {"line": at - start + 1, "frame": "", "kernel": block}
    return {}


def _line_of(found: re.Match[str]) -> int:
    return int(found["line"] or found["nvcc"])


def _places(error: BaseException, folder: Path) -> list[dict[str, Any]]:
    """The places one exception names, innermost first."""
    node, kernel = getattr(error, "node", None), getattr(error, "src", None)
    line = getattr(node, "lineno", None)
    if isinstance(kernel, str) and isinstance(line, int):
        return [{"line": line, "frame": "", "kernel": kernel}]
    if isinstance(error, SyntaxError) and Path(error.filename or "").parent == folder:
        return [{"line": error.lineno or 0, "frame": "", "kernel": ""}]
    processed = [(m["file"], int(m["line"]), m["frame"]) for m in _PROCESSED.finditer(str(error))]
    frames = traceback.extract_tb(error.__traceback__)
    passed = [(frame.filename, frame.lineno or 0, frame.name) for frame in frames]
    return [
        {"line": line, "frame": name, "kernel": ""}
        for file, line, name in reversed(passed + processed)
        if Path(file).parent == folder
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


def _compiler_fault(
    kind: str, found: re.Match[str], text: str, lines: list[str], excerpt: Any
) -> Fault:
    """The fault a compiler reported, its line looked up in what the candidate embeds."""
    at = _line_of(found)
    frame = f"{Path(found['file']).name}:{at}"
    quoted = re.search(rf"^\s*{at} \|(.*)$", text[found.end() :], re.MULTILINE)
    code = _quoted_in(excerpt) or (quoted[1].strip() if quoted else "")
    line, _ = _resolved(excerpt, lines)
    matching = [line] if line else [i for i, x in enumerate(lines, 1) if code and x.strip() == code]
    if not matching and found["file"].endswith(".py") and at <= len(lines):
        matching = [at]
    line = matching[0] if matching else 0
    return Fault(
        kind, found["text"][:_MESSAGE_CHARS], line, lines[line - 1].strip() if line else code, frame
    )


def _quoted_in(excerpt: Any) -> str:
    """The line that an excerpt is about; empty where it makes no sense."""
    match excerpt:
        case {"line": int(line), "kernel": str(block)} if 0 < line <= len(block.splitlines()):
            return block.splitlines()[line - 1].strip()
    return ""


def _tool_fault(kind: str, found: re.Match[str], lines: list[str]) -> Fault:
    """The fault that an assembler or linker reported, by the kernel where it names one."""
    message = f"{Path(found['tool']).name}: {found['text'].strip()}"[:_MESSAGE_CHARS]
    named = _NAMED_KERNEL.search(found["text"])
    if named is None:
        return Fault(kind, message)
    name = named["name"][: int(named["length"])] if named["length"] else named["name"]
    defining = re.compile(rf"\b{re.escape(name)}\s*\(")
    line = next((i for i, text in enumerate(lines, 1) if defining.search(text)), 0)
    return Fault(kind, message, line, lines[line - 1].strip() if line else "", name)
