"""Ranking of kernels, best first."""

from __future__ import annotations

import math
from bisect import insort

from adaexplore.core.tree import Vertex

Order = tuple[float, float, int]


def order(vertex: Vertex) -> Order:
    """Return a sort key: best rank first, the older of equals first, failures last."""
    _, correct, speedup, estimate = vertex.rank
    return (-speedup, -estimate, vertex.id) if correct else (0.0, math.inf, vertex.id)


class Ranking:
    """Ids of correct kernels by rank; the older of equals first.

    With `failed`, failed ones follow: those that compiled, then those that did not.
    """

    def __init__(self, *, failed: bool = False) -> None:
        self._order: list[Order] = []
        self._failed = failed

    def add(self, vertex: Vertex) -> None:
        """Insert a kernel if it is correct, or if failed ones count."""
        if vertex.correct:
            insort(self._order, order(vertex))
        elif self._failed:
            compiled = vertex.rank[0]
            insort(self._order, (0.0 if compiled else 1.0, math.inf, vertex.id))

    def top(self, count: int) -> list[int]:
        """Return the best `count` ids, or all if there are fewer."""
        return [node_id for _, _, node_id in self._order[:count]]
