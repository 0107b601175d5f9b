"""Wording of statements: a rule names no program's names, sizes or lines."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Iterator

MOST_CHARS = 240
_PLACE = re.compile(r"\blines?\s+\d+|\bat \d+:\d+|\w\.py\b", re.IGNORECASE)
_SHAPE = re.compile(r"[(\[]\s*\d+(?:\s*,\s*\d+)+\s*,?\s*[)\]]|\b\d+(?:\s*[x×]\s*\d+)+\b")
_TILE = 512
"""Sides of a tile are powers of two up to this, and may be named; those of a task's tensor not."""

_CODE = re.compile(r"`([^`]*)`")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_LOOKS_LIKE_CODE = re.compile(r"\w_\w|[a-z][A-Z]|\w\d|^[A-Z_]{3,}$")
_EVERYBODYS = """
    BLOCK BLOCK_K BLOCK_M BLOCK_N BLOCK_SIZE Model ModelNew acc axis bar barrier bias block
    buffer columns desc dtype end forward grid high index kernel key layout low mask max mean
    meta min n_elements offsets other out phase pid pointer program rest rows scale self shape
    size smem stage start stride sum tile total value values weight
"""
"""Names that say what a thing is, whichever kernel it is in."""


def objection(statement: str, *sources: str) -> str:
    """Return the objection to a statement that does not hold for every kernel, "" without one.

    It may name what Python, torch and Triton offer, and not what `sources`, the programs it was
    learned from, define for themselves, nor a shape or a line of theirs.
    """
    text = " ".join(statement.split())
    if not text:
        return "the statement is empty"
    if len(text) > MOST_CHARS:
        return f"the statement has {len(text)} characters; {MOST_CHARS} are allowed"
    place = _PLACE.search(text)
    if place:
        return f"the statement speaks of one program's {place[0]!r}: say what holds for any"
    for shape in _SHAPE.findall(text):
        if not _is_tile(shape):
            return f"the statement speaks of one task's shape {shape}: say what holds for any"
    own = {name for source in sources for name in _defined(source)}
    for name in _names(text):
        if name in own:
            return f"the statement names {name!r}, which is only this program's: say what it is"
    return ""


def _is_tile(shape: str) -> bool:
    sides = [int(number) for number in re.findall(r"\d+", shape)]
    return all(side & (side - 1) == 0 and side <= _TILE for side in sides)


def _names(text: str) -> Iterator[str]:
    """Yield the names in a statement: every identifier in code, identifier-like words in prose."""
    for code in _CODE.findall(text):
        yield from _NAME.findall(code)
    for word in _NAME.findall(_CODE.sub(" ", text)):
        if _LOOKS_LIKE_CODE.search(word):
            yield word


def _defined(source: str) -> set[str]:
    """Return the names that a program defines, without those common to all kernels."""
    tree = ast.parse(source)
    bound, offered = set(), set(_EVERYBODYS.split())
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                bound.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                offered |= set(_imported(aliases))
            case ast.keyword(arg=str(name)) if not _is_launch_of_its_own(name, tree):
                offered.add(name)
    return {n for n in bound - offered if len(n) > 1 and not keyword.iskeyword(n)}


def _imported(aliases: Iterable[ast.alias]) -> Iterator[str]:
    for alias in aliases:
        yield alias.asname or alias.name.partition(".")[0]


def _is_launch_of_its_own(name: str, tree: ast.AST) -> bool:
    """Return True for a keyword that is a parameter of the program's own functions."""
    return any(isinstance(node, ast.arg) and node.arg == name for node in ast.walk(tree))
