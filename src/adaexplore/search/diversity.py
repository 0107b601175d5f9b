"""Diversity of the kernels of a search, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable

from adaexplore.core.node import Node
from adaexplore.core.protocols.policy import Cell
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.search.traits import traits_of

Spread = tuple[int | None, int, float | None]
"""(structure of the step, structures so far, distance so far), as `diversity` describes them."""


def diversity(nodes: Iterable[Node]) -> list[Spread]:
    """Return for every step its structure, the number of structures so far, and their distance.

    A structure is a cell of `traits`, numbered in the order of discovery; None for a step that is
    not correct. The distance is the root mean square over all pairs of correct kernels so far,
    between 0 and 2, None for fewer than two kernels; a repeated kernel counts once. It is computed
    from running sums: for vectors `v` it is `2 n / (n - 1) * (mean of |v|^2 - |mean of v|^2)`.
    """
    found: dict[Cell, int] = {}
    spreads: list[Spread] = []
    total: list[float] = []
    squares, count = 0.0, 0
    for node in nodes:
        structure = None
        if isinstance(node.evaluation, Passed):
            traits = traits_of(node)
            structure = found.setdefault(traits.cell, len(found) + 1)
            if not node.reused:
                vector = traits.vector
                total += [0.0] * (len(vector) - len(total))
                for i, value in enumerate(vector):
                    total[i] += value
                squares += math.fsum(value * value for value in vector)
                count += 1
        spreads.append((structure, len(found), _mean_distance(total, squares, count)))
    return spreads


def _mean_distance(total: list[float], squares: float, count: int) -> float | None:
    if count < 2:
        return None
    variance = squares / count - math.fsum(value * value for value in total) / count**2
    return math.sqrt(max(2 * count / (count - 1) * variance, 0.0))
