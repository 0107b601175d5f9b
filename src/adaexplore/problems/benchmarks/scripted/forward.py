"""The `forward` of a problem: a script's `call_op`, with the values of a case as parameters."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from adaexplore.problems.benchmarks.scripted.case import TimedCase, names_read
from adaexplore.problems.benchmarks.scripted.function import UnusableError


def forward_of(call: ast.FunctionDef, case: TimedCase) -> tuple[TimedCase, ast.FunctionDef]:
    """Return `forward`, and the case without the values that it does not need.

    Values that are literals become part of it.
    """
    parameter = call.args.args[-1].arg
    body = [node for node in call.body if ast.unparse(node) != "torch.cuda.synchronize()"]
    if not any(isinstance(node, ast.Return) and node.value for node in ast.walk(call)):
        raise UnusableError("its script's call returns nothing that could be compared")
    if not case.is_tuple:
        return case, _method(parameter, body)
    names = _unpacked(body, parameter, case)
    if names:
        body = body[1:]
    names = names or _named(case)
    parts: list[ast.expr] = [
        case.literal(value) or ast.Name(name, ast.Load())
        for name, value in zip(names, case.values, strict=True)
    ]
    literals = {n: p for n, p in zip(names, parts, strict=True) if isinstance(p, ast.Constant)}
    changed = [_Parts(parameter, parts, literals).visit(copy.deepcopy(node)) for node in body]
    read = names_read(changed)
    if parameter in read - set(names):
        return case, _method(f"*{parameter}", body)
    case, names = case.with_only(names, read)
    return case, _method(", ".join(names), changed)


def _unpacked(body: list[ast.stmt], parameter: str, case: TimedCase) -> list[str]:
    """Return the names that the first statement unpacks the case to; none if it does not."""
    match body[0]:
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=name)) if (
            name == parameter
        ):
            names = [part.id for part in parts if isinstance(part, ast.Name)]
            return names if len(set(names)) == len(parts) == len(case.values) else []
    return []


def _named(case: TimedCase) -> list[str]:
    """Return a name for each value of a case: its own where it has one."""
    names: list[str] = []
    for place, value in enumerate(case.values):
        own = value.id if isinstance(value, ast.Name) else ""
        names.append(own if own and own not in names else f"input{place}")
    return names


class _Parts(ast.NodeTransformer):
    """Puts the parts of a tuple where it is indexed or spread, and literals in for their names."""

    def __init__(self, name: str, parts: list[ast.expr], literals: Mapping[str, ast.expr]) -> None:
        self._name = name
        self._parts = parts
        self._literals = literals

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Put a literal in for its name."""
        return self._literals.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Put a part in for `case[0]`."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(place))) if (
                name == self._name
            ):
                return self._parts[place]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Put the parts in for `*case`."""
        args: list[ast.expr] = []
        for arg in node.args:
            match arg:
                case ast.Starred(value=ast.Name(id=name)) if name == self._name:
                    args += self._parts
                case _:
                    args.append(arg)
        node.args = args
        return self.generic_visit(node)


def _method(given: str, body: list[ast.stmt]) -> ast.FunctionDef:
    [made] = ast.parse(f"def forward(self, {given}): pass").body
    assert isinstance(made, ast.FunctionDef)
    made.body = list(body)
    return made
