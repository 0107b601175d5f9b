"""Syntax colours, compact enough to embed thousands of sources in one file.

A line's colours are one string of runs, each a class letter and a length: `k3.1f6` colours three
characters as a keyword, leaves one plain and colours six as a function's name. Text after the last
run is plain. The page cuts the line's text by it, so no markup is ever built from a source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    String,
)

PLAIN = "."
CLASSES = (
    (Comment, "c"),
    (String, "s"),
    (Number, "n"),
    (Keyword.Constant, "n"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Decorator, "d"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Builtin, "b"),
)
"""Token type to class letter, first match wins; the style sheet gives each letter a colour."""

PYTHON = PythonLexer()
CPP = CppLexer()


@lru_cache(maxsize=1024)  # a live page is made anew for each step, from the same sources
def highlight(source: str) -> list[tuple[str, str]]:
    """Return the lines of a Python module as (text, runs), with kernels in strings coloured."""
    lines: list[tuple[str, str]] = []
    texts: list[str] = []
    runs: list[tuple[str, int]] = []
    for kind, value in _embedded(_tokens(PYTHON, source)):
        first, *rest = value.split("\n")
        _append(texts, runs, kind, first)
        for part in rest:
            lines.append(("".join(texts), _encode(runs)))
            texts, runs = [], []
            _append(texts, runs, kind, part)
    lines.append(("".join(texts), _encode(runs)))
    return lines


def plain(text: str) -> list[tuple[str, str]]:
    """Return the lines of any text in the form of `highlight`, without colours."""
    return [(line, "") for line in text.split("\n")]


def _tokens(lexer: Lexer, source: str) -> Iterator[tuple[str, str]]:
    for _, token, value in lexer.get_tokens_unprocessed(source):
        yield _letter(token), value


@cache
def _letter(token: object) -> str:
    return next((letter for kind, letter in CLASSES if token in kind), PLAIN)


def _embedded(tokens: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the same tokens, with a kernel inside a string literal coloured in its own language."""
    literal: list[str] = []
    for letter, value in tokens:
        if letter == "s":
            literal.append(value)
            continue
        yield from _literal("".join(literal))
        literal.clear()
        yield letter, value
    yield from _literal("".join(literal))


@lru_cache(maxsize=512)
def _literal(text: str) -> tuple[tuple[str, str], ...]:
    lexer = _language(text)
    if lexer is None:
        return (("s", text),) if text else ()
    start = text.index("\n")
    end = max(text.rfind("\n"), start)
    return (("s", text[:start]), *_tokens(lexer, text[start:end]), ("s", text[end:]))


def _language(literal: str) -> Lexer | None:
    """Return the lexer of a kernel written as a string, None for any other string."""
    if "\n" not in literal:
        return None
    if any(word in literal for word in ("#include", 'extern "C"', "__global__")):
        return CPP
    return PYTHON if "@triton" in literal or "import triton" in literal else None


def _append(texts: list[str], runs: list[tuple[str, int]], letter: str, text: str) -> None:
    if not text:
        return
    texts.append(text)
    if runs and runs[-1][0] == letter:
        runs[-1] = (letter, runs[-1][1] + len(text))
    else:
        runs.append((letter, len(text)))


def _encode(runs: list[tuple[str, int]]) -> str:
    if runs and runs[-1][0] == PLAIN:
        runs = runs[:-1]
    return "".join(f"{letter}{length}" for letter, length in runs)
