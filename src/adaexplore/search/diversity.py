"""How different the kernels of a search are, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable

from adaexplore.core.evaluation import Passed
from adaexplore.core.node import Node
from adaexplore.core.policy import Cell
from adaexplore.search.traits import traits_of

Spread = tuple[int | None, int, float | None]


def diversity(nodes: Iterable[Node]) -> list[Spread]:
    """For every step, in order: the number of its structure, how many there are, how far apart.

    Structures are the cells of `traits`, numbered as they were found; a step that is not correct
    has none. The distance is the root mean square over all pairs of correct kernels so far, between
    0 and 2, None for fewer than two; kernels that came again count once. It takes sums only: for
    vectors `v` it is `2 n / (n - 1) * (mean of |v|^2 - |mean of v|^2)`.
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
        spreads.append((structure, len(found), _apart(total, squares, count)))
    return spreads


def _apart(total: list[float], squares: float, count: int) -> float | None:
    if count < 2:
        return None
    variance = squares / count - math.fsum(value * value for value in total) / count**2
    return math.sqrt(max(2 * count / (count - 1) * variance, 0.0))
