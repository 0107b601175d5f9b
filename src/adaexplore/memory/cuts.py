"""Single changes that make a module smaller, each of which can be taken back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

Undo = Callable[[], None]
Cut = Callable[[], Undo]
"""Changes the tree in place and says how to change it back."""

STATEMENTS = ("body", "orelse", "finalbody", "handlers")
"""Fields of nodes that hold statements."""

_KEEPS_ITS_INTERFACE = ("forward", "__init__")


def unwrapped(node: ast.AST) -> Iterator[list[Cut]]:
    """Replace a branch, a loop or a `with` by its statements."""
    for field in STATEMENTS:
        statements = getattr(node, field, None)
        if not isinstance(statements, list):
            continue
        for statement in list(statements):
            if isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try):
                inner = [getattr(statement, part, []) for part in ("body", "orelse")]
                yield [_spliced(node, field, statement, part) for part in inner if part]


def parameters(tree: ast.AST) -> Iterator[list[Cut]]:
    """Remove a parameter from a function, and its argument from every call and launch."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name not in _KEEPS_ITS_INTERFACE:
            for parameter in list(node.args.args):
                yield [_without_parameter(tree, node, parameter)]


def simpler(node: ast.AST) -> Iterator[list[Cut]]:
    """Replace an expression by zero or by a part of it; an integer by a smaller one."""
    for field, at, old in _operands(node):
        if isinstance(old, ast.Constant):
            yield [_replaced(node, field, at, ast.Constant(n)) for n in _smaller(old.value)]
        elif not isinstance(old, ast.Name | ast.Attribute):
            instead = [ast.Constant(0), *_parts(old)]
            yield [_replaced(node, field, at, new) for new in instead]


def _operands(node: ast.AST) -> Iterator[tuple[str, int | None, ast.expr]]:
    """The expressions right below a node that are read, and where they stand in it."""
    if isinstance(node, ast.JoinedStr | ast.FormattedValue):
        return
    for field, value in ast.iter_fields(node):
        found = enumerate(value) if isinstance(value, list) else [(None, value)]
        for at, one in found:
            stored = isinstance(getattr(one, "ctx", None), ast.Store | ast.Del)
            if isinstance(one, ast.expr) and not stored:
                yield field, at, one


def _smaller(value: object) -> list[int]:
    """Integers to try in the place of a constant, the smallest first."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        return []
    return sorted({1, value // 2})


def _parts(old: ast.expr) -> list[ast.expr]:
    match old:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.BoolOp(values=values):
            return values
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Subscript(value=value):
            return [value]
        case ast.Call(func=ast.Attribute(value=value), args=args):
            return [value, *args]
        case ast.Call(args=args):
            return args
    return []


def _replaced(node: ast.AST, field: str, at: int | None, new: ast.expr) -> Cut:
    return lambda: _set(node, field, at, new)


def _spliced(node: ast.AST, field: str, old: ast.stmt, new: list[ast.stmt]) -> Cut:
    def cut() -> Undo:
        statements = getattr(node, field)
        if old not in statements:  # an earlier cut took it
            return lambda: None
        at = statements.index(old)
        return _set(node, field, None, [*statements[:at], *new, *statements[at + 1 :]])

    return cut


def _without_parameter(tree: ast.AST, function: ast.FunctionDef, parameter: ast.arg) -> Cut:
    def cut() -> Undo:
        arguments = function.args
        at = arguments.args.index(parameter)
        default = at - len(arguments.args) + len(arguments.defaults)
        undone = [_set(arguments, "args", None, _without(arguments.args, at))]
        if default >= 0:
            undone.append(_set(arguments, "defaults", None, _without(arguments.defaults, default)))
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _called(call) == function.name:
                named = [k for k in call.keywords if k.arg != parameter.arg]
                undone.append(_set(call, "keywords", None, named))
                undone.append(_set(call, "args", None, _without(call.args, at)))

        def undo() -> None:
            for step in reversed(undone):
                step()

        return undo

    return cut


def _called(call: ast.Call) -> str:
    """The name of the function that is called, or launched as `name[grid](...)`."""
    function = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return function.id if isinstance(function, ast.Name) else ""


def _without(items: list[Any], at: int) -> list[Any]:
    return items[:at] + items[at + 1 :]


def _set(node: ast.AST, field: str, at: int | None, new: Any) -> Undo:
    """Set a field, or one item of the list in it; return the function that undoes it."""
    old = getattr(node, field)
    setattr(node, field, new if at is None else [*old[:at], new, *old[at + 1 :]])
    return lambda: setattr(node, field, old)
