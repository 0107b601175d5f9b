"""One case of a script: the statements that make its tensors at one size, and its values."""

from __future__ import annotations

import ast
import copy
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from adaexplore.problems.benchmarks.scripted.arithmetic import (
    MAKERS,
    Names,
    bind,
    elements,
    follow,
    items_of,
)
from adaexplore.problems.benchmarks.scripted.function import UnusableError

_CASES = "input_tensors"
_RECORDS = ("print(", "self.output_sizes", f"self.{_CASES}")
"""The beginnings of statements that make no part of a case."""


@dataclass(frozen=True, slots=True)
class TimedSize:
    """The sizes of the loop that makes the cases: the variable, the chosen size and the first.

    `place` is that of the chosen one.
    """

    target: ast.expr
    chosen: ast.expr
    first: ast.expr
    place: int


@dataclass(frozen=True, slots=True)
class TimedCase:
    """The statements that make a case of a size and its values; a lone value is no tuple.

    `size` is None where the script makes one case only.
    """

    body: tuple[ast.stmt, ...]
    values: tuple[ast.expr, ...]
    is_tuple: bool
    size: TimedSize | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all real inputs are between 0 and 1, or a little beside."""
        nodes = [node for one in (*self.body, *self.values) for node in ast.walk(one)]
        made = {n.attr for n in nodes if isinstance(n, ast.Attribute) and n.attr in MAKERS}
        shifted = any(isinstance(node, ast.Sub | ast.USub) for node in nodes)
        return "rand" in made and "randn" not in made and not shifted

    def literal(self, value: ast.expr) -> ast.Constant | None:
        """Return the number or text that a value is, also by a name; None for another value."""
        if isinstance(value, ast.Name):
            bound = list(_bound(value.id, self.body))
            value = bound[0] if len(bound) == 1 else value
        return value if isinstance(value, ast.Constant) else None

    def with_only(self, names: Sequence[str], read: set[str]) -> tuple[TimedCase, list[str]]:
        """Return the case and the names of its values, without those that are not read."""
        kept = [place for place, name in enumerate(names) if name in read]
        values = tuple(self.values[place] for place in kept)
        return _live(replace(self, values=values)), [names[place] for place in kept]


def case_of(
    cases: ast.FunctionDef, moves: ast.FunctionDef, most: int, slow: Container[int]
) -> TimedCase:
    """Return a case of `get_input_tensors`, moved by `to_cuda` where that makes the tensors.

    It is the last one whose tensors have `most` elements or fewer and whose place is not among the
    `slow`, or else the first.
    """
    before: list[ast.stmt] = []
    for node in cases.body:
        item = _appended(node)
        if item is None:
            before.append(node)
            continue
        body, size = before, None
        if isinstance(node, ast.For):
            size = _chosen(before, node, item, moves, most, slow)
            before = [one for one in before if not _lists(one, node.iter)]
            body = [*before, *(one for one in node.body if not _skips(one))]
        found = _live(replace(_moved(body, item, moves), size=size))
        if not any("torch" in ast.unparse(one) for one in (*found.body, *found.values)):
            raise UnusableError("its script gives it no tensor")
        return found
    raise UnusableError("its script appends no case of inputs")


def _appended(node: ast.AST) -> ast.expr | None:
    """Return what a statement appends to the script's cases."""
    for one in ast.walk(node):
        match one:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr=name), attr="append"), args=[item]
            ) if name == _CASES:
                return item
    return None


def _chosen(
    before: Sequence[ast.stmt],
    loop: ast.For,
    item: ast.expr,
    moves: ast.FunctionDef,
    most: int,
    slow: Container[int],
) -> TimedSize:
    """Return the sizes; the last that is small and fast enough is chosen, or else the first."""
    names: Names = {}
    follow(before, names)
    sizes = items_of(loop.iter, names)
    if not sizes:
        raise UnusableError(f"its script's sizes cannot be read: {ast.unparse(loop.iter)}")
    body = [*loop.body, *(_moving(item, moves) if _makes(moves) else [])]
    fitting = [
        place
        for place, size in enumerate(sizes)
        if place not in slow and _count(loop.target, size, body, names) <= most
    ]
    place = max(fitting, default=0)
    return TimedSize(loop.target, sizes[place], sizes[0], place)


def _count(target: ast.expr, size: ast.expr, body: Iterable[ast.stmt], names: Names) -> int:
    of_size = dict(names)
    bind(target, size, of_size)
    return elements(body, of_size)


def _moved(body: Sequence[ast.stmt], item: ast.expr, moves: ast.FunctionDef) -> TimedCase:
    """Return the case of a loop's body and what it appends."""
    if _makes(moves):
        *rest, last = map(_without_device, _moving(item, moves))
        if not isinstance(last, ast.Return) or last.value is None:
            raise UnusableError("its script's to_cuda returns nothing")
        body, item = [*body, *rest], last.value
    if isinstance(item, ast.Name):
        item = next((v for v in _bound(item.id, body) if isinstance(v, ast.Tuple)), item)
    if isinstance(item, ast.Tuple):
        return TimedCase(tuple(body), tuple(item.elts), is_tuple=True)
    return TimedCase(tuple(body), (item,), is_tuple=False)


def _bound(name: str, body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                yield value


def _makes(moves: ast.FunctionDef) -> bool:
    """Return whether `to_cuda` makes tensors, instead of moving those of the case."""
    return any(isinstance(n, ast.Attribute) and n.attr in MAKERS for n in ast.walk(moves))


def _moving(item: ast.expr, moves: ast.FunctionDef) -> list[ast.stmt]:
    """Return the body of `to_cuda` for a case."""
    given = ast.Assign([ast.Name(moves.args.args[-1].arg, ast.Store())], item, lineno=0)
    return [given, *moves.body]


def _without_device(node: ast.stmt) -> ast.stmt:
    """Return a statement whose calls name no device: a problem's inputs are made on any."""
    changed = copy.deepcopy(node)
    for one in ast.walk(changed):
        if isinstance(one, ast.Call):
            one.keywords = [each for each in one.keywords if each.arg != "device"]
    return changed


def _lists(node: ast.stmt, sizes: ast.expr) -> bool:
    """Return whether a statement makes the list of sizes, or appends to it."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return isinstance(sizes, ast.Name) and name == sizes.id
        case ast.For():
            return ast.unparse(node.body[-1]).startswith(f"{ast.unparse(sizes)}.append(")
    return False


def _skips(node: ast.stmt) -> bool:
    """Return whether a statement of a loop leaves out sizes."""
    found = [one for one in ast.walk(node) if isinstance(one, ast.Continue | ast.Break)]
    return isinstance(node, ast.If) and bool(found)


def _live(case: TimedCase) -> TimedCase:
    """Return the case without statements whose names nothing reads."""
    body = [node for node in case.body if not ast.unparse(node).startswith(_RECORDS)]
    while True:
        read = names_read([*body, *case.values])
        kept = [node for node in body if not _is_dead(node, read)]
        if len(kept) == len(body):
            return replace(case, body=tuple(kept))
        body = kept


def names_read(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that a body reads."""
    nodes = [node for one in body for node in ast.walk(one)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _is_dead(node: ast.stmt, read: set[str]) -> bool:
    if isinstance(node, ast.If):
        return all(_is_dead(one, read) for one in (*node.body, *node.orelse))
    if not isinstance(node, ast.Assign):
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    parts = [part for target in node.targets for part in ast.walk(target)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    plain = all(isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for part in parts)
    return plain and not names & read
