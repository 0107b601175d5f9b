"""Names in collected source: the user's definitions are copied, installed packages imported."""

from __future__ import annotations

import ast
import inspect
import math
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from adaexplore.problems.graph_source import UnwritableError
from adaexplore.problems.source_files import (
    SourceDefinition,
    binding,
    cells,
    class_definition,
    function_definition,
    functions_of,
    is_installed,
    is_module_class,
)

_GIVEN = {"torch": torch, "nn": nn, "F": F, "Path": Path}
_OWN = ("Model", "ModelNew", "made", "get_inputs", "get_init_inputs")
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_Edit = tuple[ast.expr, str]


@dataclass(frozen=True, slots=True)
class _Block:
    """A definition in the collected source, and the names that it needs."""

    text: str
    early: frozenset[str]
    late: frozenset[str]


class Names:
    """The definitions and imports that collected source needs.

    Of the user's code, all that is named is copied. Of an installed package, the classes in
    `copied` are, with the functions beside them, and all else is imported. Classes of modules keep
    the methods and attributes in `kept`; `named` grows by what the collected code names.
    """

    def __init__(self, copied: Iterable[type], kept: set[str]) -> None:
        self._copied = set(copied)
        self._kept = kept
        self._names: dict[int, str] = {}
        self._values: dict[str, Any] = {**_GIVEN, **dict.fromkeys(_OWN)}
        self._imports: list[str] = []
        self._blocks: dict[str, _Block] = {}
        self.named: set[str] = set()

    def expression(self, value: Any, name: str = "", home: SourceDefinition | None = None) -> str:
        """Return an expression for a class, function, module or constant; collect its definition.

        `name` is the one that it goes by in the file of `home`. Raises `UnwritableError` for a
        value that has no source.
        """
        if id(value) in self._names:
            return self._names[id(value)]
        if type(value) in _PLAIN:
            return self._constant(name, value)
        known = _of_torch(value)
        if known:
            return known
        if isinstance(value, types.ModuleType):
            return self._module(value, name)
        if self._is_copied(value, home):
            definition = self._definition(value)
            if definition:
                return self._collected(value, definition)
        found = _importable(value, name)
        if found:
            return self._imported(value, *found)
        definition = self._definition(value) or (_binding(value, name, home) if home else None)
        if definition:
            return self._collected(value, definition)
        place = f" in {home.name}" if home else ""
        raise UnwritableError(f"{name or type(value).__name__}{place}, a {type(value).__name__}")

    def text(self) -> str:
        """Return the imports and the definitions, each after those that it needs."""
        blocks, ordered = dict(self._blocks), []
        while blocks:
            ready = [n for n, b in blocks.items() if not ((b.early | b.late) - {n}) & blocks.keys()]
            ready = ready or [n for n, b in blocks.items() if not (b.early - {n}) & blocks.keys()]
            ordered.append(blocks.pop((ready or list(blocks))[0]).text)
        imports = "\n".join(sorted(set(self._imports)))
        return "\n\n".join([*([f"{imports}\n"] if imports else []), *ordered])

    def _is_copied(self, value: Any, home: SourceDefinition | None) -> bool:
        if value in self._copied if isinstance(value, type) else False:
            return True
        module = sys.modules.get(getattr(value, "__module__", "") or "")
        beside = home is not None and getattr(module, "__file__", "") == home.file
        return beside and (isinstance(value, types.FunctionType) or is_module_class(value))

    def _definition(self, value: Any) -> SourceDefinition | None:
        unwrapped = inspect.unwrap(value) if callable(value) else value
        try:
            if isinstance(value, type):
                return class_definition(value, self._kept if is_module_class(value) else None)
            if isinstance(unwrapped, types.FunctionType) and unwrapped.__name__ != "<lambda>":
                return function_definition(unwrapped)
        except UnwritableError:
            if not _importable(value, ""):
                raise
        return None

    def _collected(self, value: Any, definition: SourceDefinition) -> str:
        """Add a definition and what it needs; return its name."""
        name = self._free(definition.name, value)
        self._names[id(value)] = name
        self.named |= definition.attributes
        early, late = definition.names
        edits, needed = self._edits(definition, early | late)
        text = _edited(definition, edits, name)
        self._blocks[name] = _Block(
            text,
            frozenset(n for word in early for n in needed.get(word, ())),
            frozenset(n for word in late for n in needed.get(word, ())),
        )
        if isinstance(value, type):
            self._note_bases(value)
        return name

    def _note_bases(self, kind: type) -> None:
        """Note what the bases of a class name: their text may be left to an import."""
        for base in kind.__mro__[1:]:
            if not base.__module__.startswith("torch."):
                self.named |= {n for f in functions_of(base) for n in f.__code__.co_names}

    def _edits(
        self, definition: SourceDefinition, names: set[str]
    ) -> tuple[list[_Edit], dict[str, list[str]]]:
        """Return replacements for references, and the collected names behind each name."""
        edits: list[_Edit] = []
        needed: dict[str, list[str]] = {}
        for root, attributes in _references(ast.parse(definition.text)):
            if root.id not in names or root.id not in definition.scope:
                continue
            node: ast.expr = root
            value, last = definition.scope[root.id], root.id
            for attribute in attributes:
                if not isinstance(value, types.ModuleType) or is_installed(value):
                    break
                if not hasattr(value, attribute.attr):
                    break
                node, value, last = attribute, getattr(value, attribute.attr), attribute.attr
            text = self.expression(value, last, definition)
            needed.setdefault(root.id, []).append(text)
            if isinstance(value, types.ModuleType):
                self._submodules(value, attributes)
            if text != ast.unparse(node):
                edits.append((node, text))
        return edits, needed

    def _submodules(self, module: types.ModuleType, attributes: list[ast.Attribute]) -> None:
        """Import the submodules that a chain of attributes goes through."""
        path = module.__name__
        for attribute in attributes:
            path = f"{path}.{attribute.attr}"
            if path not in sys.modules:
                return
            if module is not torch and module.__name__ == path.partition(".")[0]:
                self._imports.append(f"import {path}")

    def _module(self, module: types.ModuleType, name: str) -> str:
        if not is_installed(module):
            raise UnwritableError(f"the module {module.__name__} as a value")
        final = self._free(name or module.__name__.rpartition(".")[2], module)
        self._names[id(module)] = final
        parent, _, last = module.__name__.rpartition(".")
        if parent and last == final:
            self._imports.append(f"from {parent} import {last}")
        else:
            renamed = "" if module.__name__ == final else f" as {final}"
            self._imports.append(f"import {module.__name__}{renamed}")
        return final

    def _imported(self, value: Any, module: str, name: str) -> str:
        final = self._free(name, value)
        self._names[id(value)] = final
        renamed = "" if final == name else f" as {final}"
        self._imports.append(f"from {module} import {name}{renamed}")
        return final

    def _constant(self, name: str, value: Any) -> str:
        final = self._free(name, value)
        if final not in self._blocks:
            is_number = not isinstance(value, float) or math.isfinite(value)
            text = repr(value) if is_number else f'float("{value}")'
            self._blocks[final] = _Block(f"{final} = {text}\n", frozenset(), frozenset())
        return final

    def _free(self, name: str, value: Any) -> str:
        """Return the name, with a number where another value has it."""
        final, count = name, 1
        while final in self._values and not _is_one(self._values[final], value):
            count += 1
            final = f"{name}_{count}"
        self._values[final] = value
        return final


def _is_one(first: Any, second: Any) -> bool:
    if isinstance(first, _PLAIN) and first is not None:
        return type(first) is type(second) and first == second
    return first is second


def _of_torch(value: Any) -> str:
    """Return the usual expression of a function or class of torch."""
    name = getattr(value, "__name__", "")
    for prefix, module in (("torch", torch), ("nn", nn), ("F", F)):
        if value is module:
            return prefix
        if vars(module).get(name) is value and not isinstance(value, types.ModuleType):
            return f"{prefix}.{name}"
    return ""


def _importable(value: Any, name: str) -> tuple[str, str] | None:
    """Return an installed module and the name in it under which a value can be imported."""
    names = [getattr(value, "__name__", ""), name]
    home = sys.modules.get(str(getattr(value, "__module__", "")))
    for module in [home] if home else []:
        for each in names:
            if is_installed(module) and each and vars(module).get(each) is value:
                return module.__name__, each
    if isinstance(value, types.FunctionType | type) and not is_installed(home):
        return None
    for module in list(sys.modules.values()):
        has_it = isinstance(module, types.ModuleType) and vars(module).get(name) is value
        if name and has_it and is_installed(module):
            return module.__name__, name
    return None


def _binding(value: Any, name: str, home: SourceDefinition) -> SourceDefinition | None:
    """Return the statement that binds a name to a value, in the user's files or cells."""
    places = [(home.file, home.scope)]
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.endswith(".py") and vars(module).get(name) is value and not is_installed(module):
            places.append((file, vars(module)))
    if home.scope.get("__name__") == "__main__":
        places += [(cell, home.scope) for cell in cells()]
    return next(filter(None, (binding(name, file, scope) for file, scope in places)), None)


def _references(tree: ast.AST) -> Iterator[tuple[ast.Name, list[ast.Attribute]]]:
    """Yield the names in a tree, each with the attributes that are looked up on it in turn."""
    for node in ast.iter_child_nodes(tree):
        chain: list[ast.Attribute] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            chain.insert(0, inner)
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield inner, chain
        else:
            yield from _references(inner)


def _edited(definition: SourceDefinition, edits: list[_Edit], name: str) -> str:
    """Return the text of a definition with references replaced, and defined under a name."""
    lines = [line.encode() for line in definition.text.splitlines(keepends=True)]
    for node, text in sorted(edits, key=lambda e: (e[0].lineno, e[0].col_offset), reverse=True):
        root = ast.unparse(node).partition(".")[0]
        if root in definition.bound_inside:
            raise UnwritableError(f"{definition.name}, in which {root} has two meanings")
        line, end = lines[node.lineno - 1], node.end_col_offset
        lines[node.lineno - 1] = line[: node.col_offset] + text.encode() + line[end:]
    text = b"".join(lines).decode()
    if name != definition.name:
        return _redefined(text, definition.name, name)
    return text


def _redefined(text: str, old: str, new: str) -> str:
    """Return a definition under another name, within it too."""
    [node] = ast.parse(text).body
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    places = [
        (n.lineno, n.col_offset) for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == old
    ]
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        line = lines[node.lineno - 1]
        places.append((node.lineno, line.index(old.encode(), node.col_offset + 4)))
    for row, column in sorted(places, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new.encode() + line[column + len(old.encode()) :]
    return b"".join(lines).decode()
