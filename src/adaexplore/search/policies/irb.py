"""IRB: large steps with the best kernels in context."""

from __future__ import annotations

import random

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking


class BestKernels(Policy):
    """Iterative refinement by large steps, with the best kernels in context (arXiv 2604.16625).

    The context holds the `Config.pool_size` best kernels. While fewer are correct, failed ones fill
    it up, with their errors: so does the released code, which ranks all by (compiled, correct,
    speedup).
    """

    def __init__(self, settings: Config) -> None:
        self._settings = settings
        self._ranking = Ranking(failed=True)

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Rank the kernel."""
        self._ranking.add(tree[node_id])

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the root with the best kernels, best first."""
        return Selection(ROOT_ID, "large", tuple(self._ranking.top(self._settings.pool_size)))
