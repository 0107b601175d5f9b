"""Ranking of correct kernels, best first."""

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
    """Ids of correct kernels by rank; the older of equals first."""

    def __init__(self) -> None:
        self._order: list[Order] = []

    def add(self, vertex: Vertex) -> None:
        """Insert a kernel if it is correct."""
        if vertex.correct:
            insort(self._order, order(vertex))

    def top(self, count: int) -> list[int]:
        """Return the best `count` ids, or all if there are fewer."""
        return [node_id for _, _, node_id in self._order[:count]]
