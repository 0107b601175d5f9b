"""A module's source as matchers see it: its kernels, what is around them, and what names mean."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from adaexplore.core.rule import Scope

JITS = frozenset({"triton.jit", "triton.experimental.gluon.jit"})


class Module:
    """The syntax tree of a source; raises `SyntaxError` or `ValueError` for one that has none."""

    def __init__(self, source: str) -> None:
        self._tree = ast.parse(source)
        self._imported: dict[str, str] = {}
        self._bound: set[str] = set()
        self._found: dict[object, dict[str | None, list[ast.AST]]] = {}
        for node in ast.walk(self._tree):
            self._take(node)

    def resolved(self, node: ast.AST) -> str | None:
        """The full name that a dotted name stands for, such as `triton.language.dot`.

        None for what is no name, is not imported and no builtin, or has several meanings here.
        """
        if isinstance(node, ast.Attribute):
            before = self.resolved(node.value)
            return f"{before}.{node.attr}" if before else None
        if not isinstance(node, ast.Name) or node.id in self._bound:
            return None
        return self._imported.get(node.id) or (node.id if hasattr(builtins, node.id) else None)

    def nodes(self, scope: Scope, *types: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of these types in the bodies of jitted functions, or anywhere else."""
        by_type = self._in_kernels if scope == "kernel" else self._around_kernels
        for of in types:
            yield from by_type.get(of, ())

    def named(self, scope: Scope, full: str) -> Iterable[ast.AST]:
        """The uses of a name there, by its full name."""
        return self._by_name(scope, ast.Name, ast.Attribute).get(full, ())

    def calls(self, scope: Scope, full: str) -> Iterable[ast.AST]:
        """The calls of a function there, by its full name."""
        return self._by_name(scope, ast.Call).get(full, ())

    def _by_name(self, scope: Scope, *types: type[ast.AST]) -> Mapping[str | None, list[ast.AST]]:
        key = (scope, types)
        if key not in self._found:
            self._found[key] = {}
            for node in self.nodes(scope, *types):
                full = self.resolved(node.func if isinstance(node, ast.Call) else node)
                self._found[key].setdefault(full, []).append(node)
        return self._found[key]

    @cached_property
    def _in_kernels(self) -> dict[type[ast.AST], list[ast.AST]]:
        jitted = [f for f in ast.walk(self._tree) if self._is_jitted(f)]
        bodies = [statement for f in jitted for statement in getattr(f, "body", [])]
        return _by_type(node for statement in bodies for node in ast.walk(statement))

    @cached_property
    def _around_kernels(self) -> dict[type[ast.AST], list[ast.AST]]:
        return _by_type(self._outside(self._tree))

    @cached_property
    def global_numbers(self) -> set[str]:
        """Names that are bound once, at the top of the module, to a plain number."""
        found: set[str] = set()
        several: set[str] = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                (several if node.id in found else found).add(node.id)
            elif isinstance(node, ast.arg):
                several.add(node.arg)
        plain = {
            target.id
            for statement in self._tree.body
            if isinstance(statement, ast.Assign) and _is_number(statement.value)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        return plain - several - self._imported.keys()

    def _take(self, node: ast.AST) -> None:
        """Note the names that a node binds."""
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.partition(".")[0]
                    self._import(name, alias.name if alias.asname else name)
            case ast.ImportFrom(module=str(module), names=aliases):
                for alias in aliases:
                    self._import(alias.asname or alias.name, f"{module}.{alias.name}")
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                self._bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                self._bound.add(name)

    def _import(self, name: str, full: str) -> None:
        if self._imported.setdefault(name, full) != full:  # by version, say
            self._bound.add(name)

    def _is_jitted(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.FunctionDef):
            return False
        called = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        return any(self.resolved(decorator) in JITS for decorator in called)

    def _outside(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for field, value in ast.iter_fields(node):
            if field == "body" and self._is_jitted(node):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._outside(child)


def _by_type(nodes: Iterable[ast.AST]) -> dict[type[ast.AST], list[ast.AST]]:
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in nodes:
        found.setdefault(type(node), []).append(node)
    return found


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
