"""Whether a candidate is written for the sizes of its problem, by the look of its source.

This decides nothing by itself: it says which other sizes are a fair question.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from adaexplore.evaluate.offline.sizes import Replaced, follow, in_setup


def made_for_sizes(source: str, replaced: Iterable[Replaced]) -> bool:
    """Whether it has a size of the problem as a literal, or no access of a kernel has a mask.

    Literals that follow the problem's sizes (see `sizes.follow`) or make its own inputs do not
    count. False for what is not Python.
    """
    replaced = list(replaced)
    try:
        tree = ast.parse(follow(source, replaced))
    except (SyntaxError, ValueError, RecursionError):
        return False
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.keyword) and node.arg == "mask" for node in nodes):
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
