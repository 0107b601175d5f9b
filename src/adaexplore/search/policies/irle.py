"""IRLE: large steps with recent and elite kernels in context, half and half."""

from __future__ import annotations

import random
from collections import deque

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking
from adaexplore.search.pool import softmax_choice

_ELITE = 256
"""Number of best kernels that the elite half is drawn from; bounds the cost of a step."""


class RecentAndElite(Policy):
    """Iterative refinement by large steps with half recent, half elite kernels (arXiv 2604.16625).

    The context holds `Config.pool_size` kernels. The elites come first, drawn by softmax of their
    speedups without replacement. The recent ones may be failed ones.
    """

    def __init__(self, settings: Config) -> None:
        self._pool_size = settings.pool_size
        self._recent: deque[int] = deque(maxlen=settings.pool_size // 2)
        self._ranking = Ranking()

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Remember the kernel, and rank it if it is correct."""
        self._ranking.add(tree[node_id])
        self._recent.append(node_id)

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the root with the elites first, then the recent kernels, oldest first."""
        elites: list[int] = []
        others = [kernel for kernel in self._ranking.top(_ELITE) if kernel not in self._recent]
        for _ in range(min(self._pool_size - len(self._recent), len(others))):
            index = softmax_choice([tree[kernel].speedup for kernel in others], rng)
            elites.append(others.pop(index))
        return Selection(ROOT_ID, "large", (*elites, *self._recent))
