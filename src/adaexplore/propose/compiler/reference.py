"""The reference's source: the parts a candidate keeps, and its class with a new `forward`."""

from __future__ import annotations

import ast
import copy
import symtable
import textwrap
from dataclasses import dataclass

from adaexplore.propose.compiler.graph import UnsupportedError
from adaexplore.propose.compiler.wrapper import bound_names, names_in, rename

_TEST_FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})
_ORIGINAL = "_reference_forward"


@dataclass(frozen=True, slots=True)
class Support:
    """Source around a class: imports, and the other statements in their order."""

    imports: list[str]
    statements: list[str]


class ReferenceFile:
    """The syntax tree of a problem's file. The class `Model` is called `ModelNew` throughout.

    Where `Model` is a class from elsewhere, `ModelNew` is derived from it. `inherited` is the
    source of a `forward` that another file defines.
    """

    def __init__(self, source: str, inherited: str = "") -> None:
        self._body = _renamed(ast.parse(source).body)
        self._inherited = inherited
        self._classes = {node.name: node for node in self._body if isinstance(node, ast.ClassDef)}
        if "ModelNew" not in self._classes:
            raise UnsupportedError("has no top-level class Model")
        self._model = self._classes["ModelNew"]
        self._forward = self._find_forward(self._model)
        self._is_own = self._forward in self._model.body

    def _find_forward(self, node: ast.ClassDef) -> ast.FunctionDef:
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "forward":
                return statement
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self._classes:
                return self._find_forward(self._classes[base.id])
        try:
            [found] = ast.parse(textwrap.dedent(self._inherited)).body
        except (SyntaxError, ValueError):
            found = None
        if isinstance(found, ast.FunctionDef):
            return found
        raise UnsupportedError("Model inherits a forward whose source cannot be found")

    def forward_parameters(self) -> list[str]:
        """Return the names of `forward`'s parameters that accept an argument, without `self`."""
        arguments = self._forward.args
        return [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]][1:]

    def support(self, extra: set[str]) -> Support:
        """Return the parts of the file that the class and the names in `extra` need.

        Statements that bind nothing (settings, prints, seeds) and the functions that make inputs
        are left out.
        """
        statements = [
            node
            for node in self._body
            if node is not self._model and not _is_test_function(node) and bound_names(node)
        ]
        needed = set(names_in([self._constructor()])) | extra
        needed |= _globals_of(self._forward) if self._is_own else set()
        kept: list[ast.stmt] = []
        for node in reversed(statements):
            if bound_names(node) & (needed | {"*"}):
                needed |= set(names_in([node]))
                kept.insert(0, node)
        imports = [node for node in kept if isinstance(node, ast.Import | ast.ImportFrom)]
        others = [node for node in kept if not isinstance(node, ast.Import | ast.ImportFrom)]
        return Support(
            [ast.unparse(_only(node, needed)) for node in imports],
            [ast.unparse(node) for node in others],
        )

    def _constructor(self) -> ast.ClassDef:
        """Return the class without its forward."""
        node = copy.copy(self._model)
        node.body = [
            statement
            for statement in self._model.body
            if not (isinstance(statement, ast.FunctionDef) and statement.name == "forward")
        ]
        return node

    @property
    def original(self) -> str:
        """The expression by which a method of `ModelNew` calls the reference's own `forward`."""
        return f"self.{_ORIGINAL}" if self._is_own else "super().forward"

    def model_class(self, members: str, forward_body: str) -> str:
        """Return the source of `ModelNew`: `members` added, and `forward` with another body.

        The reference's own `forward` stays as the method that `original` calls.
        """
        node = self._constructor()
        forward = _without_annotations(self._forward)
        if self._is_own:
            original = copy.deepcopy(forward)
            original.name = _ORIGINAL
            node.body = [*node.body, original]
        forward.decorator_list = []
        forward.args.args[0].arg = "self"
        forward.body = ast.parse(forward_body).body
        start = 1 if ast.get_docstring(node) is not None else 0
        added = ast.parse(members).body
        attributes = [n for n in added if not isinstance(n, ast.FunctionDef)]
        methods = [n for n in added if isinstance(n, ast.FunctionDef)]
        node.body = [*node.body[:start], *attributes, *node.body[start:], *methods, forward]
        return ast.unparse(ast.fix_missing_locations(node))


def _without_annotations(function: ast.FunctionDef) -> ast.FunctionDef:
    function = copy.deepcopy(function)
    function.returns = None
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return function


def _globals_of(function: ast.FunctionDef) -> set[str]:
    """Return the names outside a function that it reads: no parameters, no local names."""
    text = ast.unparse(_without_annotations(function))
    tables = [symtable.symtable(text, "", "exec")]
    found: set[str] = set()
    for table in tables:
        tables += table.get_children()
        found |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    return found


def _renamed(body: list[ast.stmt]) -> list[ast.stmt]:
    is_defined = any(isinstance(node, ast.ClassDef) and node.name == "Model" for node in body)
    bound = {name for node in body for name in bound_names(node)}
    if not is_defined and bound & {"Model", "*"}:
        return [*body, *ast.parse("class ModelNew(Model):\n    pass").body]
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            node.name = "ModelNew"
    return rename(body, {"Model": "ModelNew"})


def _is_test_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in _TEST_FUNCTIONS


def _only(node: ast.stmt, needed: set[str]) -> ast.stmt:
    """Return an import of the needed names only."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        kept = needed | {"*"}
        node.names = [n for n in node.names if (n.asname or n.name).partition(".")[0] in kept]
    return node
