"""Matchers of rules: patterns on a module's syntax tree."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.rule import Matcher, Scope
from adaexplore.memory.kernels import JITS, Module

_HOPPER = "triton.experimental.gluon.language.nvidia.hopper"
_ALIASES = {
    "tl": "triton.language",
    "libdevice": "triton.language.extra.libdevice",
    "triton": "triton",
    "torch": "torch",
    "gl": "triton.experimental.gluon.language",
    "tma": f"{_HOPPER}.tma",
    "mbarrier": f"{_HOPPER}.mbarrier",
    "warpgroup_mma": f"{_HOPPER}.warpgroup_mma",
    "warpgroup_mma_wait": f"{_HOPPER}.warpgroup_mma_wait",
}
"""What the first name of a dotted one in a pattern stands for, however a module imports it."""

_NAMES = (ast.Name, ast.Attribute)
_IGNORED = frozenset({"ctx", "kind", "type_comment"})
_COMPARED = re.compile(r"(<|<=|>|>=) (-?\d+)")
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_KINDS: Mapping[str, tuple[type[ast.AST], type | None]] = {
    "a float": (ast.Constant, float),
    "an integer": (ast.Constant, int),
    "a string": (ast.Constant, str),
    "a tuple": (ast.Tuple, None),
    "a list": (ast.List, None),
    "a dict": (ast.Dict, None),
}
_NOT_A_POWER_OF_TWO = "not a power of two"

Found = Callable[[Any, Module], bool]


def _always(_node: Any, _module: Module) -> bool:
    return True


CONSTRUCTS: Mapping[str, tuple[tuple[type[ast.AST], ...], Found]] = {
    "break": ((ast.Break,), _always),
    "continue": ((ast.Continue,), _always),
    "try": ((ast.Try,), _always),
    "raise": ((ast.Raise,), _always),
    "del": ((ast.Delete,), _always),
    "global": ((ast.Global,), _always),
    "match": ((ast.Match,), _always),
    "import": ((ast.Import, ast.ImportFrom), _always),
    "lambda": ((ast.Lambda,), _always),
    "dict": ((ast.Dict,), _always),
    "set": ((ast.Set,), _always),
    "nested function": ((ast.FunctionDef,), _always),
    "assignment expression": ((ast.NamedExpr,), _always),
    "starred assignment": ((ast.Starred,), lambda node, _: isinstance(node.ctx, ast.Store)),
    "loop with else": ((ast.For,), lambda node, _: bool(node.orelse)),
    "loop over values": ((ast.For,), lambda node, _: isinstance(node.iter, ast.Tuple | ast.List)),
    "ellipsis as index": ((ast.Subscript,), lambda node, _: _has_ellipsis(node)),
    "plain global number": (
        (ast.Name,),
        lambda node, module: isinstance(node.ctx, ast.Load) and node.id in module.global_numbers,
    ),
    "jit above autotune": (
        (ast.FunctionDef,),
        lambda node, module: _jit_above_autotune(node, module),
    ),
}
"""What has no pattern of its own, by the name that matchers call it: nodes, and what they are."""


def alias_of(module: str) -> str | None:
    """Return the name by which patterns call a module; None for a module that they cannot."""
    return next((alias for alias, full in _ALIASES.items() if full == module), None)


def check_matcher(matcher: Matcher) -> None:
    """Raise `BadInputError`, in one line, for a matcher that cannot be used."""
    if bool(matcher.code) == bool(matcher.construct):
        raise BadInputError("a matcher has either 'code' or a 'construct'")
    if matcher.construct and matcher.construct not in CONSTRUCTS:
        known = ", ".join(sorted(CONSTRUCTS))
        raise BadInputError(f"no such construct: {matcher.construct!r}; known: {known}")
    names = {name for code in matcher.code for name in _wildcards(_compiled(code))}
    for name, condition in matcher.where.items():
        if name not in names:
            raise BadInputError(f"'where' speaks of {name!r}, which 'code' does not have")
        if condition not in (*_KINDS, _NOT_A_POWER_OF_TWO) and not _COMPARED.fullmatch(condition):
            kinds = ", ".join([*_KINDS, _NOT_A_POWER_OF_TWO])
            raise BadInputError(f"no such condition: {condition!r}; write '< 16', or {kinds}")


def lines(matcher: Matcher, module: Module) -> Iterator[int]:
    """The lines of a module where a matcher finds what it looks for."""
    if matcher.construct:
        types, found = CONSTRUCTS[matcher.construct]
        for node in module.nodes(matcher.scope, *types):
            if found(node, module):
                yield getattr(node, "lineno", 1)
    match = _Match(module, matcher.where)
    for code in matcher.code:
        pattern = _compiled(code)
        for node in _alike(pattern, matcher.scope, module):
            if match.holds(pattern, node):
                yield getattr(node, "lineno", 1)


def _alike(pattern: ast.AST, scope: Scope, module: Module) -> Iterable[ast.AST]:
    """Return the nodes that a pattern may match: by the name that it has, or else of its type."""
    if isinstance(pattern, ast.Call) and (full := _dotted(pattern.func)):
        return module.calls(scope, full)
    if isinstance(pattern, _NAMES):
        full = _dotted(pattern)
        return module.named(scope, full) if full else module.nodes(scope, *_NAMES)
    return module.nodes(scope, type(pattern))


@lru_cache(maxsize=1024)
def _compiled(code: str) -> ast.AST:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            [statement] = ast.parse(code).body
    except (SyntaxError, ValueError):
        raise BadInputError(f"{code!r} is no single expression or statement") from None
    return statement.value if isinstance(statement, ast.Expr) else statement


def _wildcards(pattern: ast.AST) -> set[str]:
    names = {n.id for n in ast.walk(pattern) if isinstance(n, ast.Name)}
    return {name for name in names if name.startswith("_")}


@dataclass(frozen=True, slots=True)
class _Match:
    """One comparison of a pattern with a node of a module."""

    module: Module
    where: Mapping[str, str]

    def holds(self, pattern: ast.AST, node: ast.AST) -> bool:
        """Return True if the node matches the pattern."""
        if isinstance(pattern, ast.Name) and pattern.id.startswith("_"):
            condition = self.where.get(pattern.id)
            return isinstance(node, ast.expr) and (not condition or _is(node, condition))
        if isinstance(pattern, ast.Name | ast.Attribute):
            return self._same_name(pattern, node)
        if type(pattern) is not type(node):
            return False
        if isinstance(pattern, ast.Call) and isinstance(node, ast.Call):
            return self.holds(pattern.func, node.func) and self._same_arguments(pattern, node)
        return all(
            self._same_field(value, getattr(node, field))
            for field, value in ast.iter_fields(pattern)
            if field not in _IGNORED
        )

    def _same_name(self, pattern: ast.Name | ast.Attribute, node: ast.AST) -> bool:
        dotted = _dotted(pattern)
        if dotted is not None:
            return self.module.resolved(node) == dotted
        if not isinstance(pattern, ast.Attribute) or not isinstance(node, ast.Attribute):
            return False
        return pattern.attr in ("_", node.attr) and self.holds(pattern.value, node.value)

    def _same_arguments(self, pattern: ast.Call, node: ast.Call) -> bool:
        """`...` allows further arguments of either sort; unpacked ones may be anything."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            return False
        given = {k.arg: k.value for k in node.keywords}
        if not all(k.arg in given and self.holds(k.value, given[k.arg]) for k in pattern.keywords):
            return False
        more = any(map(_is_ellipsis, pattern.args))
        return self._same_list(pattern.args, node.args) and (
            more or len(node.keywords) == len(pattern.keywords)
        )

    def _same_field(self, pattern: object, value: object) -> bool:
        if isinstance(pattern, list) and isinstance(value, list):
            return self._same_list(pattern, value)
        if isinstance(pattern, ast.AST) and isinstance(value, ast.AST):
            return self.holds(pattern, value)
        return type(pattern) is type(value) and pattern == value

    def _same_list(self, patterns: Sequence[ast.AST], values: Sequence[ast.AST]) -> bool:
        """`...` stands for any number of further values, at the end."""
        if patterns and _is_ellipsis(patterns[-1]):
            patterns = patterns[:-1]
            values = values[: len(patterns)]
        return len(patterns) == len(values) and all(map(self.holds, patterns, values))


@lru_cache(maxsize=4096)
def _dotted(pattern: ast.AST) -> str | None:
    """The full name that a pattern's dotted name stands for; None for one with a wildcard."""
    if isinstance(pattern, ast.Attribute):
        before = _dotted(pattern.value)
        return f"{before}.{pattern.attr}" if before and pattern.attr != "_" else None
    if isinstance(pattern, ast.Name) and not pattern.id.startswith("_"):
        return _ALIASES.get(pattern.id, pattern.id)
    return None


def _is(node: ast.expr, condition: str) -> bool:
    """Return True for a literal that meets a condition."""
    if condition in _KINDS:
        kind, of = _KINDS[condition]
        return isinstance(node, kind) and (of is None or type(getattr(node, "value", None)) is of)
    if not isinstance(node, ast.Constant) or type(node.value) is not int:
        return False
    if condition == _NOT_A_POWER_OF_TWO:
        return node.value <= 0 or node.value & (node.value - 1) != 0
    compared = _COMPARED.fullmatch(condition)
    return compared is not None and bool(_COMPARISONS[compared[1]](node.value, int(compared[2])))


def _is_ellipsis(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _has_ellipsis(node: ast.Subscript) -> bool:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(map(_is_ellipsis, parts))


def _jit_above_autotune(node: ast.FunctionDef, module: Module) -> bool:
    names = [module.resolved(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    first = next((at for at, name in enumerate(names) if name in JITS), len(names))
    return "triton.autotune" in names[first:]
