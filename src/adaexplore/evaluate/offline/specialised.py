"""Candidates that are written for the sizes of their problem, recognised by their source.

This decides nothing by itself: it says which other sizes are a fair question.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from adaexplore.evaluate.offline.sizes import Replaced, follow, in_setup

_BEFORE_THE_MASK = {"load": 1, "store": 2}
"""How many arguments come before it."""


def made_for_sizes(source: str, replaced: Iterable[Replaced]) -> bool:
    """Return True for a literal size of the problem, or a kernel's access without a mask.

    Literals that follow the problem's sizes (see `sizes.follow`) or make its own inputs do not
    count. Without any `tl.load` and `tl.store` nothing has a mask. False for what is not Python.
    """
    replaced = list(replaced)
    try:
        tree = ast.parse(follow(source, replaced))
    except (SyntaxError, ValueError, RecursionError):
        return False
    nodes = list(ast.walk(tree))
    masked = [found for node in nodes if (found := _is_masked(node)) is not None]
    if not masked or not all(masked):
        return True
    setup = {(site.line, site.start) for site in in_setup(tree)}
    sizes = {r.old for r in replaced}
    return any(
        isinstance(node, ast.Constant)
        and type(node.value) is int
        and node.value in sizes
        and (node.lineno, node.col_offset) not in setup
        for node in nodes
    )


def _is_masked(node: ast.AST) -> bool | None:
    """Return True if a load or store of Triton's is kept within bounds; None for anything else."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="tl" | "language"), attr="load" | "store" as name)
        ):
            given = {keyword.arg for keyword in node.keywords}
            bounded = bool(given & {"mask", "boundary_check", None})
            return bounded or len(node.args) > _BEFORE_THE_MASK[name]
    return None
