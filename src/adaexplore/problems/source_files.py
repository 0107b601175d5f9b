"""The text of live classes and functions, as their files or notebook cells have it."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import symtable
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from torch import nn

from adaexplore.problems.graph_source import UnwritableError

FUTURE = "from __future__ import annotations\n"
"""First statement of collected sources: their annotations are evaluated by nobody."""

_NO_SOURCE = (
    "{}, whose source cannot be found (code from exec or a prompt has none; put it into a file)"
)
_EMPTY = "    pass\n"
_NOT_KEPT = {"__init__", "__new__", "__del__", "__repr__", "__str__", "__init_subclass__"}

Node = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A class, function or assignment at a place of a file, with the names that it can see."""

    name: str
    file: str
    text: str
    scope: Mapping[str, Any]

    @property
    def names(self) -> tuple[set[str], set[str]]:
        """The global names that it needs when it is defined, and when it runs."""
        early: set[str] = set()
        late: set[str] = set()
        for table, is_function in _tables(symtable.symtable(FUTURE + self.text, "", "exec")):
            top = table.get_type() == "module"
            used = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
            seen = used if top else {n for n in used if table.lookup(n).is_global()}
            (late if is_function else early).update(seen)
        return {n for n in early if self._is_outside(n)}, {n for n in late if self._is_outside(n)}

    @property
    def bound_inside(self) -> set[str]:
        """Names that some function of it binds for itself."""
        tables = _tables(symtable.symtable(FUTURE + self.text, "", "exec"))
        nested = (table for table, _ in tables if table.get_type() != "module")
        return {s.get_name() for table in nested for s in table.get_symbols() if s.is_local()}

    def _is_outside(self, name: str) -> bool:
        if name == self.name or name.startswith("__"):
            return False
        return name in self.scope or not hasattr(builtins, name)

    @property
    def attributes(self) -> set[str]:
        """The names of attributes, and texts that may be such names."""
        found = set()
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {node.value} if node.value.isidentifier() else set()
        return found


def function_definition(function: FunctionType) -> SourceDefinition:
    """Return the definition of a function, with its decorators."""
    name = function.__qualname__
    for node in ast.walk(_parsed(function.__code__.co_filename, name)):
        if not isinstance(node, ast.FunctionDef) or node.name != function.__name__:
            continue
        if _first_line(node) == function.__code__.co_firstlineno:
            file = function.__code__.co_filename
            return SourceDefinition(node.name, file, _text(file, node), _scope(function))
    raise UnwritableError(f"{name}, whose source is no def statement")


def class_definition(kind: type, kept: set[str] | None) -> SourceDefinition:
    """Return the definition of a class; of its methods and attributes those in `kept`, or all."""
    functions = [f for f in functions_of(kind) if linecache.getlines(f.__code__.co_filename)]
    line = functions[0].__code__.co_firstlineno if functions else 0
    module = sys.modules.get(kind.__module__)
    name = kind.__qualname__
    scope = ChainMap(*map(dict, map(_scope, functions))) if functions else vars(module or nn)
    files = [functions[0].__code__.co_filename] if functions else _files_of(module)
    file = next((f for f in files if any(n == name for n, _ in _classes(_parsed(f, name)))), "")
    if not file:
        made = next(filter(None, (binding(name, each, scope) for each in files)), None)
        if made:
            return made
        raise UnwritableError(_NO_SOURCE.format(name))
    nodes = [node for each, node in _classes(_parsed(file, name)) if each == name]
    inside = [n for n in nodes if n.lineno <= line <= (n.end_lineno or 0)]
    node = (inside or nodes)[-1]
    bases = {base.__name__: base for base in kind.__mro__[1:]}
    text = _text(file, node) if kept is None else _sliced(file, node, kept)
    return SourceDefinition(node.name, file, text, ChainMap(dict(scope), bases))


def binding(name: str, file: str, scope: Mapping[str, Any]) -> SourceDefinition | None:
    """Return the last statement at the top level of a file that binds a name, None without one."""
    found = None
    for node in _parsed(file, name).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) and node.value else targets
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if name in (names or [getattr(node, "name", "")]):
            found = SourceDefinition(name, file, _text(file, node), scope)
    return found


def cells() -> list[str]:
    """Return the names of a notebook's cells, the last one first."""
    named = reversed(list(linecache.cache))
    return [file for file in named if not Path(file).exists() and _is_python(file)]


def _files_of(module: ModuleType | None) -> list[str]:
    """Return the file of a module, and a notebook's cells where it is one."""
    file = getattr(module, "__file__", None) or ""
    is_main = module is not None and module.__name__ == "__main__"
    return [*([file] if linecache.getlines(file) else []), *(cells() if is_main else [])]


def functions_of(kind: type) -> list[FunctionType]:
    """Return the functions that a class's own statement defines."""
    found = []
    for value in vars(kind).values():
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        value = inspect.unwrap(value) if callable(value) else value
        is_own = isinstance(value, FunctionType) and value.__module__ == kind.__module__
        if is_own and value.__qualname__.startswith(f"{kind.__qualname__}."):
            found.append(value)
    return found


def is_installed(module: ModuleType | None) -> bool:
    """Return whether every process with this interpreter can import a module."""
    file = getattr(module, "__file__", None)
    if module is None or module.__name__ == "__main__":
        return False
    if not file:
        return module.__name__ in sys.builtin_module_names
    path = Path(file).resolve()
    standard = Path(ast.__file__).resolve().parent
    return bool({"site-packages", "dist-packages"} & set(path.parts)) or path.is_relative_to(
        standard
    )


def is_module_class(value: object) -> bool:
    """Return whether a value is a class of modules."""
    return isinstance(value, type) and issubclass(value, nn.Module)


def _is_python(file: str) -> bool:
    """Return whether a cell has text that parses: one that awaits does not."""
    lines = linecache.getlines(file)
    try:
        _tree("".join(lines))
    except SyntaxError:
        return False
    return bool(lines)


@lru_cache(maxsize=64)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _parsed(file: str, name: str) -> ast.Module:
    lines = linecache.getlines(file)
    if not lines:
        raise UnwritableError(_NO_SOURCE.format(name))
    return _tree("".join(lines))


def _classes(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield all classes with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", node
            yield from _classes(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield from _classes(node, f"{prefix}{node.name}.<locals>.")
        else:
            yield from _classes(node, prefix)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _text(file: str, node: ast.stmt, margin: int | None = None) -> str:
    """Return a statement's lines without their margin, by default that of its first line."""
    lines = linecache.getlines(file)[_first_line(node) - 1 : node.end_lineno]
    return _without("".join(lines), node.col_offset if margin is None else margin)


def _without(text: str, margin: int) -> str:
    """Return text without the margin; lines of strings that have none stay."""
    lines = text.rstrip().splitlines()
    return "\n".join(line if line[:margin].strip() else line[margin:] for line in lines) + "\n"


def _sliced(file: str, node: ast.ClassDef, kept: set[str]) -> str:
    """Return a class of modules without what no collected code names."""
    if _first_line(node.body[0]) == node.lineno:
        return _text(file, node)
    members = [member for member in node.body if _is_kept(member, kept)]
    body = "\n".join(_text(file, member, node.col_offset) for member in members)
    return f"{_header(file, node)}\n{body or _EMPTY}"


def _header(file: str, node: ast.ClassDef) -> str:
    """Return the decorators and the `class` line, without comments before the body."""
    lines = linecache.getlines(file)[_first_line(node) - 1 : _first_line(node.body[0]) - 1]
    kept = _without("".join(lines), node.col_offset).splitlines()
    while not kept[-1].partition("#")[0].rstrip().endswith(":"):
        kept.pop()
    return "\n".join(kept)


def _is_kept(member: ast.stmt, kept: set[str]) -> bool:
    match member:
        case ast.FunctionDef(name=name):
            special = name.startswith("__") and name.endswith("__")
            return name in kept or (special and name not in _NOT_KEPT)
        case ast.Assign(targets=targets):
            names = {
                n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)
            }
            return bool(names & kept)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name in kept
        case ast.ClassDef(name=name):
            return name in kept
    return not isinstance(member, ast.Expr | ast.AnnAssign | ast.Pass)


def _scope(function: FunctionType) -> Mapping[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed: dict[str, Any] = {}
    for name, cell in cells:
        try:
            closed[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    closed.pop("__class__", None)
    return ChainMap(closed, function.__globals__)


def _tables(table: Any, inside: bool = False) -> Iterator[tuple[Any, bool]]:
    inside = inside or table.get_type() == "function"
    yield table, inside
    for child in table.get_children():
        yield from _tables(child, inside)
