"""A benchmark's function that is made of kernels, and the call of it by its script."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from adaexplore.problems.benchmarks.scripted.function import UnusableError


@dataclass(frozen=True, slots=True)
class Kernels:
    """The function, or another name of its file such as a class, that a script calls."""

    name: str

    @staticmethod
    def called(source: str, call: ast.FunctionDef) -> Kernels:
        """Return the first name in a script's `call_op` that a source binds."""
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            raise UnusableError(f"its function is no Python: {error.msg}") from None
        bound = set()
        for node in tree.body:
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    bound.add(name)
                case ast.Assign(targets=targets):
                    bound |= {one.id for one in targets if isinstance(one, ast.Name)}
        for part in ast.walk(call):
            match part:
                case ast.Call(func=ast.Name(id=name)) if name in bound:
                    return Kernels(name)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in bound:
                    return Kernels(name)
        raise UnusableError("its script calls nothing that its file defines")

    def draws(self) -> str:
        """Return nothing: only a run tells."""
        return ""

    def trains(self) -> bool:
        """Return False: kernels have no gradients of their own."""
        return False

    def without_dropout(self, call: ast.FunctionDef) -> tuple[ast.FunctionDef, str]:
        """Return the call as it is."""
        return call, ""

    def written_by(self, call: ast.FunctionDef) -> list[str]:
        """Return the arguments that a call returns without binding them: it wrote into them."""
        nodes = list(ast.walk(call))
        last = call.body[-1]
        value = last.value if isinstance(last, ast.Return) else None
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        given = {each.arg for each in call.args.args}
        return [name for name in names if name in given - bound]
