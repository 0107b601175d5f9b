"""The integers of a source that represent sizes, and their replacement in its text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_SETUP = ("get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True)
class Replaced:
    """An integer `old` replaced by `new`; `name` is the constant, "" for a literal in a call."""

    name: str
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Site:
    """An integer in a source, at bytes `start` to `end` of a line; `name` as in `Replaced`."""

    name: str
    value: int
    line: int
    start: int
    end: int


def follow(candidate_source: str, replaced: Iterable[Replaced]) -> str:
    """Replace a candidate's copies of the problem's constants like the problem's own constants.

    A copy is an integer in a top-level assignment to the same name (in any case of letters) with
    the same value. A block size that happens to equal a dimension is not a copy. Without a copy,
    the source is returned unchanged.
    """
    new = {(r.name.lower(), r.old): r.new for r in replaced if r.name}
    try:
        tree = ast.parse(candidate_source)
    except (SyntaxError, ValueError, RecursionError):  # loading it reports the error
        return candidate_source
    keys = [(site, (site.name.lower(), site.value)) for site in assigned(tree)]
    return edited(candidate_source, [(site, new[key]) for site, key in keys if key in new])


def assigned(tree: ast.Module) -> Iterator[Site]:
    """Yield the integers in assignments at the top level."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _assigned_to(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _assigned_to(target, value)


def _assigned_to(target: ast.expr, value: ast.expr) -> Iterator[Site]:
    match target, value:
        case ast.Name(id=name), _:
            yield from _integers(value, name)
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for part, its_value in zip(targets, values, strict=True):
                yield from _assigned_to(part, its_value)


def in_setup(tree: ast.Module) -> Iterator[Site]:
    """Yield the integers in the functions that make inputs and constructor arguments."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in _SETUP:
            for part in statement.body:
                yield from _integers(part, "")


def _integers(tree: ast.AST, name: str) -> Iterator[Site]:
    """Yield the positive integers in an expression or a statement."""
    pending = [tree]
    while pending:
        node = pending.pop()
        match node:
            case ast.UnaryOp(op=ast.USub()):
                continue
            case ast.Constant(value=value) if type(value) is int:
                assert node.end_col_offset is not None
                yield Site(name, value, node.lineno, node.col_offset, node.end_col_offset)
        pending.extend(ast.iter_child_nodes(node))


def edited(source: str, edits: Iterable[tuple[Site, int]]) -> str:
    """Return the source with integers replaced; all other text and line numbers stay."""
    lines = source.encode().splitlines(keepends=True)
    places = {(site.line - 1, site.start, site.end): new for site, new in edits}
    for (line, start, end), new in sorted(places.items(), reverse=True):  # last first: offsets stay
        lines[line] = lines[line][:start] + str(new).encode() + lines[line][end:]
    return b"".join(lines).decode()
