"""Recognition of candidates that are written for the sizes of their problem, by their source.

The result decides no verdict; it selects the other sizes that a candidate is tested with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from adaexplore.evaluate.offline.sizes import Replaced, follow, in_setup

_BEFORE_THE_MASK = {"load": 1, "store": 2}
"""The number of positional arguments before the mask."""


def made_for_sizes(source: str, replaced: Iterable[Replaced]) -> bool:
    """Return True if a source has a literal size of the problem, or an access without a mask.

    Literals that are replaced with the problem's sizes (see `sizes.follow`) or that make the
    candidate's own inputs do not count. A source without `tl.load` and `tl.store` has no mask. A
    source that is not Python gives False.
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
    """Return True if a load or store of Triton has bounds; None for any other node."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="tl" | "language"), attr="load" | "store" as name)
        ):
            given = {keyword.arg for keyword in node.keywords}
            bounded = bool(given & {"mask", "boundary_check", None})
            return bounded or len(node.args) > _BEFORE_THE_MASK[name]
    return None
