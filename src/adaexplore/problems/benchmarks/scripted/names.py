"""Names that the text of a problem reads and nothing binds."""

from __future__ import annotations

import ast
import builtins


def undefined(text: str) -> list[str]:
    """Return the names that a module reads and that neither it nor Python binds, in order.

    Where a name is bound is not looked at; a star import may bind any.
    """
    nodes = list(ast.walk(ast.parse(text)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(dir(builtins))
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound |= {(each.asname or each.name).partition(".")[0] for each in aliases}
    if "*" in bound:
        return []
    return sorted({node.id for node in names} - bound - {"__file__", "__name__"})
