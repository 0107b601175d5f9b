"""UCT with progressive widening: visits bound the number of children of a node."""

from __future__ import annotations

from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Vertex
from adaexplore.search.policies.uct import Uct


class Widening(Uct):
    """UCT that expands a node while it has fewer than `factor * visits ** exponent` children.

    Progressive widening (Coulom 2007, Computing Elo Ratings of Move Patterns in the Game of Go), in
    the form of Couëtoux et al. 2011, Continuous Upper Confidence Trees. Both leave the constants to
    the problem.
    """

    def __init__(self, settings: Config, *, factor: float = 1.0, exponent: float = 0.5) -> None:
        super().__init__(settings)
        self._factor = factor
        self._exponent = exponent

    def _expands(self, vertex: Vertex, best_value: float, best_score: float) -> bool:
        limit: float = self._factor * vertex.visits**self._exponent
        return vertex.width < limit
