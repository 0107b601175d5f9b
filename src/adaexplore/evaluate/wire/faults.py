"""The place in a candidate's source where an exception or a compiler's error arose.

`describe` runs in the candidate's process, where the exception is; `fault_of` reads the description
in the judge, without trusting it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from adaexplore.core.text.headline import MOST_CHARS, headline
from adaexplore.core.verdict.evaluation import Fault
from adaexplore.evaluate.wire.messages import Place, Raised

_TRACEBACK_CHARS = 20_000
_TEXT_CHARS = 1_000_000  # all errors of a compiler: the first is the one that counts
BUILD_FAILED = "Error building extension"
"""The beginning of PyTorch's message for an extension that could not be built."""

_COMPILER_ERROR = re.compile(
    r"^(?P<file>[^\s:(\"']+)"
    r"(?::(?P<line>\d{1,9})(?::\d+)?:|\((?P<nvcc>\d{1,9})\):)"  # GCC, Clang and MLIR; nvcc
    r"[ \t]{0,99}(?:fatal )?error:?[ \t]{0,99}"
    r"(?P<text>.{0,2000}?invalid layout: .{0,2000}\n.*|.*)$",  # MLIR's, in two lines
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
_SAID_BY_MLIR = re.compile(r"PassManager::run failed|error encountered during parsing")
"""Exceptions whose reason MLIR prints to standard error."""

_NAMED_KERNEL = re.compile(r"function '(?:_Z(?P<length>\d{1,4}))?(?P<name>\w+)'")
_PROCESSED = re.compile(
    r'^ *File "(?P<file>[^"]+)", line (?P<line>\d{1,9}), in (?P<frame>\w+)$', re.MULTILINE
)
_POINTED_AT = re.compile(r"^[ \t]*--> (?P<file>[^\n:]+):(?P<line>\d{1,9})(?::\d+)?$", re.MULTILINE)
"""The place in a message of CuTe DSL."""

_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_AROUND = 2  # lines of a generated file, by which a line is found that occurs twice


def describe(error: BaseException, folder: Path) -> Raised:
    """Describe an exception: its classes, its root's text, and its places in the source.

    `folder` holds the candidate's own file. A Triton error carries its place: the text of the
    kernel and a line in it; the place in a helper's caller follows in `__cause__`. Helion's texts
    name the lines that it was processing, those of CuTe DSL point at one. Colours are left out.
    """
    chain = list(_causes(error))
    root = _most_telling(chain)
    places = [place for link in reversed(chain) for place in _places(link, folder)]
    return Raised(
        type=type(root).__name__,
        message=_COLOURS.sub("", str(root))[:_TEXT_CHARS],
        types=tuple(c.__name__ for c in (*type(error).__mro__, *type(root).__mro__)),
        traceback=_traceback(error, folder)[-_TRACEBACK_CHARS:],
        places=tuple(places[:50]),
        excerpt=_excerpt(str(root), folder),
    )


def fault_of(error: Raised, source: str, log: str = "") -> Fault:
    """Return the fault of a described exception, placed in the candidate's `source`.

    The first error of a C++ compiler or of the tools behind it, or the one that MLIR wrote to the
    process's `log`, is preferred to the exception that followed.
    """
    lines = source.splitlines()
    kind, message = error.type, error.message[:_TEXT_CHARS]  # a process may send more
    for text in (message, log if _SAID_BY_MLIR.search(message) else ""):
        found = _COMPILER_ERROR.search(text)
        if found:
            return _compiler_fault(kind, found, text, lines, error.excerpt)
    found = _TOOL_ERROR.search(message)
    if found:
        return _tool_fault(kind, found, lines)
    for place in error.places:
        line, frame = _resolved(place, lines)
        if line:
            return Fault(kind, headline(message), line, lines[line - 1].strip(), frame)
    return Fault(kind, headline(message))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and the chain of its causes, down to the root."""
    link: BaseException | None = error
    for _ in range(50):  # a candidate can tie a knot into its own chain
        if link is None:
            return
        yield link
        link = link.__cause__


def _traceback(error: BaseException, folder: Path) -> str:
    """Return the traceback from the candidate's own first frame on, without its callers."""
    trace = error.__traceback__
    while trace and Path(trace.tb_frame.f_code.co_filename).parent != folder:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    return _COLOURS.sub("", text)


def _most_telling(chain: Sequence[BaseException]) -> BaseException:
    """Return the exception that quotes a compiler's error, else the root, else any with a text."""
    quoting = [link for link in chain if _quotes_compiler(str(link))]
    with_words = [link for link in chain if str(link).strip()]
    return (quoting or with_words or chain)[-1]


def _quotes_compiler(text: str) -> bool:
    quotes = _COMPILER_ERROR.search(text) or _POINTED_AT.search(_COLOURS.sub("", text))
    return BUILD_FAILED in text or bool(quotes)


def _excerpt(message: str, folder: Path) -> Place | None:
    """Return the line of a compiler's first error in a file under `folder`, and lines around it.

    For an error in a library's header, the line that led there. None where no such file is named.
    """
    first = _COMPILER_ERROR.search(message)
    if first is None:
        return None
    named = [(first["file"], _line_of(first))]
    named += [(m["file"], int(m["line"])) for how in _LED_THERE for m in how.finditer(message)]
    for name, line in named:
        file, at = Path(name).resolve(), line - 1
        if file.is_relative_to(folder) and file.is_file():
            lines = file.read_text(errors="replace").splitlines()
            start = max(at - _AROUND, 0)
            block = "\n".join(lines[start : at + _AROUND + 1])
            return Place(at - start + 1, kernel=block)
    return None


def _line_of(found: re.Match[str]) -> int:
    return int(found["line"] or found["nvcc"])


def _places(error: BaseException, folder: Path) -> list[Place]:
    """Return the places that one exception names, innermost first."""
    node, kernel = getattr(error, "node", None), getattr(error, "src", None)
    line = getattr(node, "lineno", None)
    if isinstance(kernel, str) and isinstance(line, int):
        return [Place(line, kernel=kernel)]
    if isinstance(error, SyntaxError) and Path(error.filename or "").parent == folder:
        return [Place(error.lineno or 0)]
    text = _COLOURS.sub("", str(error))
    processed = [(m["file"], int(m["line"]), m["frame"]) for m in _PROCESSED.finditer(text)]
    processed += [(m["file"], int(m["line"]), "") for m in _POINTED_AT.finditer(text)]
    frames = traceback.extract_tb(error.__traceback__)
    passed = [(frame.filename, frame.lineno or 0, frame.name) for frame in frames]
    return [
        Place(line, name)
        for file, line, name in reversed(passed + processed)
        if Path(file).parent == folder
    ]


def _resolved(place: Place, lines: list[str]) -> tuple[int, str]:
    """Return the line in the candidate's source (0 if it is not there) and the function's name."""
    if not place.kernel:
        return (place.line, place.frame) if 0 < place.line <= len(lines) else (0, "")
    name = re.match(r"\s*def\s+(\w+)", place.kernel)
    block = place.kernel.splitlines()
    start = _find_block(block, lines)
    inside = start and 0 < place.line <= len(block)
    return (start + place.line - 1 if inside else 0), name[1] if name else ""


def _find_block(block: list[str], lines: list[str]) -> int:
    """Return the line, from 1, at which `block` begins, however indented; 0 if there is none."""
    wanted = [line.strip() for line in block]
    stripped = [line.strip() for line in lines]
    for start in range(len(stripped) - len(wanted) + 1):
        if stripped[start : start + len(wanted)] == wanted:
            return start + 1
    return 0


def _compiler_fault(
    kind: str, found: re.Match[str], text: str, lines: list[str], excerpt: Place | None
) -> Fault:
    """Return the fault that a compiler reported, its line looked up in the candidate's strings."""
    at = _line_of(found)
    frame = f"{Path(found['file']).name}:{at}"
    quoted = re.search(rf"^[ \t]*{at} \|(.*)$", text[found.end() :], re.MULTILINE)
    code = _quoted_in(excerpt) or (quoted[1].strip() if quoted else "")
    line, _ = _resolved(excerpt, lines) if excerpt else (0, "")
    matching = [line] if line else [i for i, x in enumerate(lines, 1) if code and x.strip() == code]
    if not matching and found["file"].endswith(".py") and at <= len(lines):
        matching = [at]
    line = matching[0] if matching else 0
    if found["file"].endswith(".py"):  # named after the candidate: another name for each
        frame = _function_at(line, lines)
    return Fault(
        kind,
        " ".join(found["text"].split("\n"))[:MOST_CHARS],
        line,
        lines[line - 1].strip() if line else code,
        frame,
    )


def _function_at(line: int, lines: list[str]) -> str:
    """Return the name of the function that a line of the source is in, "" for none."""
    inside = float("inf")
    for text in reversed(lines[:line]):
        indent = len(text) - len(text.lstrip())
        named = re.match(r"\s*(?:async )?def\s+(\w+)", text)
        if named and indent < inside:
            return named[1]
        if text.strip() and not text.lstrip().startswith((")", "#")):
            inside = min(inside, indent)
    return ""


def _quoted_in(excerpt: Place | None) -> str:
    """Return the line that an excerpt is about, or "" where the excerpt does not hold it."""
    block = excerpt.kernel.splitlines() if excerpt else []
    return block[excerpt.line - 1].strip() if excerpt and 0 < excerpt.line <= len(block) else ""


def _tool_fault(kind: str, found: re.Match[str], lines: list[str]) -> Fault:
    """Return the fault that an assembler or linker reported, placed by the kernel that it names."""
    message = f"{Path(found['tool']).name}: {found['text'].strip()}"[:MOST_CHARS]
    named = _NAMED_KERNEL.search(found["text"])
    if named is None:
        return Fault(kind, message)
    name = named["name"][: int(named["length"])] if named["length"] else named["name"]
    defining = re.compile(rf"\b{re.escape(name)}\s*\(")
    line = next((i for i, text in enumerate(lines, 1) if defining.search(text)), 0)
    return Fault(kind, message, line, lines[line - 1].strip() if line else "", name)
