"""The settings of a script: what its constructor sets, put where its methods read it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from adaexplore.problems.benchmarks.scripted.arithmetic import MAKERS

Settings = Mapping[str, ast.expr]


def settings_of(constructor: ast.FunctionDef | None) -> Settings:
    """Return the constants that a constructor without arguments sets, by name."""
    if constructor is None:
        return {}
    arguments, defaults = constructor.args.args, constructor.args.defaults
    by_name = dict(zip((a.arg for a in arguments[-len(defaults) :]), defaults, strict=True))
    found = {"dtype": by_name["dtype"]} if "dtype" in by_name else {}
    for node in _taken(constructor.body, by_name):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value
            ):
                folded = _Folding({}, by_name).visit(copy.deepcopy(value))
                found.pop(name, None)
                if _is_constant(folded):
                    found[name] = folded
            case _:
                for one in ast.walk(node):
                    if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                        found.pop(one.attr, None)
    return found


def _taken(body: Sequence[ast.stmt], defaults: Settings) -> Iterator[ast.stmt]:
    """Yield the statements that run where no argument is given: those under `if x is None`."""
    for node in body:
        match node:
            case ast.If(
                test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[right]),
                orelse=[],
            ) if _is_none(right) and name in defaults and _is_none(defaults[name]):
                yield from node.body
            case _:
                yield node


def with_settings(method: ast.FunctionDef, settings: Settings) -> ast.FunctionDef:
    """Return a method with its settings in place of `self.name`, as far as they are known."""
    changed = _Folding(settings).visit(copy.deepcopy(method))
    assert isinstance(changed, ast.FunctionDef)
    return changed


def constructor_of(given: ast.FunctionDef | None, users: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a constructor that sets what `users` still read of the script's object; none else."""
    nodes = [node for one in users for node in ast.walk(one)]
    if given is None or not any(isinstance(n, ast.Name) and n.id == "self" for n in nodes):
        return []
    own = [node for node in given.body if "super()" not in ast.unparse(node)]
    names = [arg.arg for arg in given.args.args if arg.arg == "dtype"]
    names += [given.args.kwarg.arg] if given.args.kwarg else []
    start = ["super().__init__()", *(f"self.{name} = {name}" for name in names)]
    [made] = ast.parse("def __init__(): pass").body
    assert isinstance(made, ast.FunctionDef)
    made.args, made.body = given.args, [*ast.parse("\n".join(start)).body, *own]
    return [made]


class _Folding(ast.NodeTransformer):
    """Puts settings in their places, and decides what is said about None."""

    def __init__(self, settings: Settings, arguments: Settings = MappingProxyType({})) -> None:
        self._settings = settings
        self._arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Put the default of an argument in its place."""
        return copy.deepcopy(self._arguments.get(node.id, node))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Put a setting in its place."""
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
                return copy.deepcopy(self._settings.get(name, node))
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Decide `None or x`."""
        self.generic_visit(node)
        match node:
            case ast.BoolOp(op=ast.Or(), values=[first, second]) if _is_none(first):
                return second
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Decide `x if y is not None else z` for a known `y`."""
        self.generic_visit(node)
        match node.test:
            case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[right]) if _is_none(
                right
            ) and _is_constant(left):
                return node.orelse if _is_none(left) else node.body
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Take the default of an option, and drop a dtype that is None."""
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="self"), attr="kwargs"), attr="get"
                ),
                args=[_, default],
            ):
                return default
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="kwargs"), attr="get"), args=[_, default]
            ):
                return default
            case ast.Call(func=ast.Attribute(attr=name)) if name in MAKERS:
                node.keywords = [
                    one for one in node.keywords if one.arg != "dtype" or not _is_none(one.value)
                ]
        return node


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_constant(node: ast.AST) -> bool:
    """Return whether an expression is the same wherever it stands: literals, `torch.float32`."""
    return all(
        isinstance(one, ast.Constant | ast.Tuple | ast.Attribute | ast.expr_context)
        or (isinstance(one, ast.Name) and one.id == "torch")
        for one in ast.walk(node)
    )
