"""Extraction of the module from a model's reply, and error messages for the model."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

MAX_SOURCE = 400_000
"""Number of characters of the longest module that is considered."""

_FENCE = re.compile(r"([ \t]*)(`{3,}+|~{3,}+)([^`]*)")
_STRING_OR_COMMENT = re.compile(
    r"""#.*|\\[\s\S]|\"{3}|'{3}|"(?:[^"\\\n]|\\[\s\S])*+"?|'(?:[^'\\\n]|\\[\s\S])*+'?"""
)
_END_OF_STRING = {quote: re.compile(rf"\\[\s\S]|{quote}") for quote in ('"""', "'''")}
_MAX_FENCES = 300
_SHOWN_WIDTH = 160
_SHOWN_NAMES = 8
_SHOWN_BLOCKS = 4


class ReplyError(Exception):
    """Unusable reply of a model.

    The message is for the model: a few lines that name the error and what to send instead.
    """


@dataclass(frozen=True, slots=True)
class _Block:
    """Code after the fence at `line` of the reply, counted from 1."""

    line: int
    code: str
    closed: bool


def extract_code(text: str, entry: str = "ModelNew") -> str:
    """Return the module in a reply, ended by one newline.

    A module parses and defines `entry` at its top level. It is the whole reply if that is a module,
    else the last closed fenced block that is one. Blocks are never joined. Raises `ReplyError` if
    there is no module.
    """
    text = normalised(text)
    lines = text.split("\n")
    blocks, plain = _blocks(lines), _blocks(lines, in_strings=True)
    for found in ([_Block(1, text, True)], blocks, plain if plain != blocks else []):
        if code := _last_whole(found, entry):
            return code.rstrip() + "\n"
    raise ReplyError(
        f"{_why_none(text, blocks, entry)}\n"
        f"Send the whole module, imports included, in one fenced block; it has to define {entry} "
        "at its top level."
    )


def check_module(source: str, entry: str = "ModelNew") -> None:
    """Raise `ReplyError` unless `source` is a module that defines `entry` at its top level.

    The source is parsed and compiled, not run.
    """
    defined = _definitions(_parse(source))
    if defined.get(entry) == "def":
        raise ReplyError(f"The module defines {entry} as a function; make it a class.")
    if defined.get(entry) not in ("class", "name"):
        only = _list(defined) or "no class and no function"
        raise ReplyError(f"The module does not define {entry} at its top level; found: {only}.")


def normalised(text: str) -> str:
    """Return `text` without a byte order mark, with line feeds as line ends.

    Raises `ReplyError` for NUL characters, which no Python source may hold.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ReplyError(
            f"The reply holds a NUL character in its line {line}; send it again as plain text."
        )
    return text


def shown(line: str) -> str:
    """Return `line` for a message: shortened, without unprintable characters."""
    if len(line) > _SHOWN_WIDTH:
        line = f"{line[: _SHOWN_WIDTH - 1]}…"
    return "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in line)


def _blocks(lines: list[str], *, in_strings: bool = False) -> list[_Block]:
    """Return the fenced blocks of a reply, in order.

    A fence in a triple-quoted string of the code does not end a block. With `in_strings` it does:
    otherwise code with an unbalanced quote would hide the blocks after it.
    """
    fences = [(at, found) for at, line in enumerate(lines) if (found := _FENCE.fullmatch(line))]
    if len(fences) > _MAX_FENCES:
        raise ReplyError(f"The reply has {len(fences)} lines of ``` or ~~~; send one fenced block.")
    blocks = []
    first = 0
    while first < len(fences):
        start, opening = fences[first]
        last = _last_fence(lines, fences, first, in_strings=in_strings)
        end = fences[last][0] if last < len(fences) else len(lines)
        code = _without_indent(lines[start + 1 : end], opening[1])
        closed = last < len(fences) and _closes(fences[last][1], opening)
        blocks.append(_Block(start + 1, code.removeprefix("\ufeff"), closed))
        first = last + 1 if closed else last
    return blocks


def _last_fence(
    lines: list[str], fences: list[tuple[int, re.Match[str]]], first: int, *, in_strings: bool
) -> int:
    """Return the index of the fence that ends the block opened by `fences[first]`.

    It is the closing fence or a fence that opens another block; the number of fences if there is
    neither.
    """
    start, opening = fences[first]
    quote = ""
    closing = []
    for index in range(first + 1, len(fences)):
        at, fence = fences[index]
        if not in_strings:
            quote = _open_quote("\n".join(lines[start + 1 : at]), quote)
            start = at
        closes = _closes(fence, opening)
        if closes or _opens_another(fence, opening):
            if not quote:
                return index
            if closes:
                closing.append(index)
    if closing and _open_quote("\n".join(lines[start + 1 :]), quote):
        return closing[0]
    return len(fences)


def _last_whole(blocks: list[_Block], entry: str) -> str:
    """Return the code of the last block that is a whole module, empty if there is none.

    At most `MAX_SOURCE` characters are parsed, which takes less than a second.
    """
    parsed = 0
    for block in reversed(blocks):
        if block.closed and entry in block.code:
            parsed += len(block.code)
            if parsed > MAX_SOURCE:
                break
            if not _fault(block.code, entry):
                return block.code
    return ""


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    return fence[2].startswith(opening[2]) and not fence[3].strip()


def _opens_another(fence: re.Match[str], opening: re.Match[str]) -> bool:
    return fence[2].startswith(opening[2]) and bool(fence[3].strip())


def _open_quote(code: str, quote: str) -> str:
    """Return the triple quote open at the end of `code`; `quote` is the one open at its start."""
    at = 0
    while True:
        found = (_END_OF_STRING[quote] if quote else _STRING_OR_COMMENT).search(code, at)
        if not found:
            return quote
        at = found.end()
        if quote:
            quote = "" if found[0] == quote else quote
        elif found[0] in _END_OF_STRING:
            quote = found[0]


def _without_indent(lines: list[str], indent: str) -> str:
    """Join the lines of a block, without the indent of its fence if the code shares it."""
    code = next((line for line in lines if line.strip()), "")
    if indent and code.startswith(indent):
        lines = [line.removeprefix(indent) for line in lines]
    return "\n".join(lines)


def _fault(code: str, entry: str) -> str:
    """Return the message of `check_module` about the code, empty if it is valid."""
    try:
        check_module(code, entry)
    except ReplyError as error:
        return str(error)
    return ""


def _parse(source: str) -> ast.Module:
    """Return the syntax tree, after a full compilation: `return` at top level parses only."""
    if len(source) > MAX_SOURCE:
        raise ReplyError(
            f"The module has {len(source)} characters, and {MAX_SOURCE} are allowed; "
            "send a shorter one."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as "\d" in a docstring: not worth a refusal
            tree = ast.parse(source)
            compile(tree, "<reply>", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ReplyError(_syntax_error(error, source)) from None
    except (RecursionError, MemoryError):
        raise ReplyError("The module is nested too deeply for Python to parse.") from None
    except ValueError as error:  # a null byte in Python 3.11, half of a surrogate pair
        raise ReplyError(f"The module is not Python source: {shown(str(error))}.") from None
    return tree


def _syntax_error(error: SyntaxError, source: str) -> str:
    message = f"The module does not parse: {shown(error.msg)}"
    lines = source.split("\n")
    if not error.lineno or error.lineno > len(lines):
        return f"{message}."
    return f"{message}, in its line {error.lineno}:\n{shown(lines[error.lineno - 1])}"


def _definitions(tree: ast.Module) -> dict[str, str]:
    """Return the names bound at module level, also under `if` and `try`, with their kinds."""
    return dict(_bindings(tree))


def _bindings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        match node:
            case ast.ClassDef(name=name):
                yield name, "class"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, "def"
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, "name"
            case ast.Assign() | ast.AnnAssign(value=ast.expr()):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                            yield part.id, "name"
            case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
                pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _list(defined: dict[str, str]) -> str:
    """List the classes and functions among the names, without imports and constants."""
    names = [shown(f"{kind} {name}") for name, kind in defined.items() if kind != "name"]
    more = [f"{len(names) - _SHOWN_NAMES} more"] if len(names) > _SHOWN_NAMES else []
    return ", ".join(names[:_SHOWN_NAMES] + more)


def _why_none(text: str, blocks: list[_Block], entry: str) -> str:
    """Explain why a reply has no module."""
    if not text.strip():
        return "The reply is empty."
    if not blocks:
        if f"class {entry}" not in text:
            return "The reply has no fenced code block."
        return f"The reply has no fenced code block and is no module itself. {_fault(text, entry)}"
    last = blocks[-1]
    if not last.closed and (last.code.strip() or len(blocks) == 1):
        return (
            f"The code block that begins at line {last.line} of the reply is never closed: "
            "the reply seems to be cut off."
        )
    found = []
    for block in reversed(blocks):
        try:
            defined = _definitions(_parse(block.code))
        except ReplyError as error:
            if entry in block.code:
                return f"In the code block at line {block.line} of the reply: {error}"
            continue
        if "Model" in defined:
            return f"The reply defines Model, which is the reference's class, and no {entry}."
        if names := _list(defined):
            found.append(f"{names} (block at line {block.line})")
    if not found:
        return f"The reply has no code block with Python that defines {entry}."
    places = "; ".join(reversed(found[:_SHOWN_BLOCKS]))
    return f"No code block of the reply defines {entry} at its top level; found: {places}."
