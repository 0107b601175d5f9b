"""The reference's source: the parts a candidate keeps, and its class with a new `forward`."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass

from adaexplore.propose.compiler.graph import UnsupportedError
from adaexplore.propose.compiler.wrapper import bound_names, names_in, rename

_TEST_FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})


@dataclass(frozen=True, slots=True)
class Support:
    """Source around a class: imports, and the other statements in their order."""

    imports: list[str]
    statements: list[str]


class ReferenceFile:
    """The syntax tree of a problem's file. The class `Model` is called `ModelNew` throughout."""

    def __init__(self, source: str) -> None:
        self._body = _renamed(ast.parse(source).body)
        self._classes = {node.name: node for node in self._body if isinstance(node, ast.ClassDef)}
        if "ModelNew" not in self._classes:
            raise UnsupportedError("has no top-level class Model")
        self._model = self._classes["ModelNew"]
        self._forward = self._find_forward(self._model)

    def _find_forward(self, node: ast.ClassDef) -> ast.FunctionDef:
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "forward":
                return statement
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self._classes:
                return self._find_forward(self._classes[base.id])
        raise UnsupportedError("Model inherits forward from another file")

    def forward_parameters(self) -> list[str]:
        """Return the names of `forward`'s parameters that accept an argument, without `self`."""
        arguments = self._forward.args
        return [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]][1:]

    def support(self, extra: set[str]) -> Support:
        """Return the parts of the file that the constructor and the names in `extra` need.

        Statements that bind nothing (settings, prints, seeds) and the functions that make inputs
        are left out.
        """
        statements = [
            node
            for node in self._body
            if node is not self._model and not _is_test_function(node) and bound_names(node)
        ]
        needed = set(names_in([self._constructor()])) | extra
        kept: list[ast.stmt] = []
        for node in reversed(statements):
            if bound_names(node) & needed:
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

    def model_class(self, members: str, forward_body: str) -> str:
        """Return the source of `ModelNew`: `members` added, and `forward` with another body."""
        node = self._constructor()
        forward = copy.deepcopy(self._forward)
        forward.decorator_list = []
        forward.returns = None
        for argument in ast.walk(forward.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        forward.args.args[0].arg = "self"
        forward.body = ast.parse(forward_body).body
        start = 1 if ast.get_docstring(node) is not None else 0
        added = ast.parse(members).body
        attributes = [n for n in added if not isinstance(n, ast.FunctionDef)]
        methods = [n for n in added if isinstance(n, ast.FunctionDef)]
        node.body = [*node.body[:start], *attributes, *node.body[start:], *methods, forward]
        return ast.unparse(ast.fix_missing_locations(node))


def _renamed(body: list[ast.stmt]) -> list[ast.stmt]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            node.name = "ModelNew"
    return rename(body, {"Model": "ModelNew"})


def _is_test_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in _TEST_FUNCTIONS


def _only(node: ast.stmt, needed: set[str]) -> ast.stmt:
    """Return an import of the needed names only."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        node.names = [n for n in node.names if (n.asname or n.name).partition(".")[0] in needed]
    return node
