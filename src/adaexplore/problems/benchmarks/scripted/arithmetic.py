"""The arithmetic of a script, read instead of run: its sizes and the shapes of its tensors."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

MAKERS = {"rand", "randn", "randint", "zeros", "ones", "empty", "full", "randperm"}
"""The functions of torch whose results a script gives as inputs, by their sizes."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"int": int, "max": max, "min": min, "range": range}
_MOST = 1 << 40
"""The largest number that is computed: a script cannot make this process busy."""

Names = dict[str, Any]


class UnknownError(Exception):
    """Raised for an expression whose value is not known without running it."""


def value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression of numbers, tuples, lists and ranges."""
    match node:
        case ast.Constant(value=int() | float() | str() | None as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Tuple(elts=parts):
            return tuple(value_of(part, names) for part in parts)
        case ast.List(elts=parts):
            return [value_of(part, names) for part in parts]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(value_of(operand, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _computed(type(op), value_of(left, names), value_of(right, names))
        case ast.Subscript(value=value, slice=ast.Constant(value=int(place))):
            return value_of(value, names)[place]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_number(value_of(arg, names)) for arg in args))
    raise UnknownError(ast.unparse(node))


def follow(body: Iterable[ast.stmt], names: Names) -> None:
    """Bind in `names` what the assignments of a body bind, as far as it is known.

    Loops that only collect sizes in lists are followed too.
    """
    for node in body:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    bind(target, value, names)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item]
                )
            ) if isinstance(names.get(name), list):
                try:
                    names[name].append(value_of(item, names))
                except UnknownError:
                    del names[name]
            case ast.For(target=target, iter=iterable, body=inner):
                for item in items_of(iterable, names):
                    bind(target, item, names)
                    follow(inner, names)


def items_of(iterable: ast.expr, names: Mapping[str, Any]) -> list[ast.expr]:
    """Return the items of a loop as expressions of constants, none where they are not known."""
    try:
        values = value_of(iterable, names)
    except UnknownError:
        return []
    if not isinstance(values, list | tuple | range) or len(values) > 1000:
        return []
    return [ast.parse(repr(item), mode="eval").body for item in values]


def bind(target: ast.expr, value: ast.expr, names: Names) -> None:
    """Bind the names of a target to a value; unbind them where it is not known."""
    try:
        found = value_of(value, names)
    except (UnknownError, TypeError, ValueError, IndexError, ZeroDivisionError):
        found = None
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    values = [found] if not isinstance(target, ast.Tuple) else found
    if not isinstance(values, list | tuple) or len(values) != len(parts):
        values = [None] * len(parts)
    for part, each in zip(parts, values, strict=True):
        if isinstance(part, ast.Name):
            names.pop(part.id, None)
            if each is not None:
                names[part.id] = each


def elements(body: Iterable[ast.AST], names: Names) -> int:
    """Return the number of elements of the tensors that a body makes, as far as it is known."""
    total = 0
    for node in body:
        if isinstance(node, ast.stmt):
            follow([node], names)
        for call in ast.walk(node):
            match call:
                case ast.Call(func=ast.Attribute(attr=name), args=args) if name in MAKERS:
                    total += _count(name, args, names)
    return total


def _count(name: str, args: list[ast.expr], names: Names) -> int:
    sizes = [arg for arg in args if not isinstance(arg, ast.Starred)]
    try:
        found = [value_of(arg, names) for arg in sizes]
        starred = [value_of(arg.value, names) for arg in args if isinstance(arg, ast.Starred)]
    except (UnknownError, TypeError, ValueError, IndexError, ZeroDivisionError):
        return 0
    if name == "randint":
        found = found[2:]
    flat = [n for one in (*found, *starred) for n in (one if isinstance(one, tuple) else (one,))]
    count = 1.0
    for size in flat:
        count *= size if _is_number(size) else 0
    return int(min(count, _MOST))


def _computed(op: type[ast.operator], left: Any, right: Any) -> Any:
    left, right = _number(left), _number(right)
    if op is ast.Pow and (abs(left) > 1024 or abs(right) > 40):
        raise UnknownError("a large power")
    found = _OPERATORS[op](left, right)
    if not _is_number(found) or abs(found) > _MOST:
        raise UnknownError("a large number")
    return found


def _number(value: Any) -> int | float:
    if not _is_number(value):
        raise UnknownError(repr(value))
    return value


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float)
