"""IRLE: large steps that are shown recent and elite kernels, half and half."""

from __future__ import annotations

import random
from collections import deque

from adaexplore.core.config import Settings
from adaexplore.core.node import ROOT_ID
from adaexplore.core.policy import Policy, Selection, Traits
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking
from adaexplore.search.pool import softmax_choice

_ELITE = 256
"""Kernels that the elite half is drawn from: so many of the best, for a step's cost to stay."""


class RecentAndElite(Policy):
    """Iterative refinement by large steps with half recent, half good kernels (arXiv 2604.16625).

    The good ones are drawn by softmax of their speedups without replacement.
    """

    def __init__(self, settings: Settings) -> None:
        self._pool_size = settings.pool_size
        self._recent: deque[int] = deque(maxlen=settings.pool_size // 2)
        self._ranking = Ranking()

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Keeps correct kernels in order of time and of speed."""
        self._ranking.add(tree[node_id])
        if tree[node_id].correct:
            self._recent.append(node_id)

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """The root, with the recent kernels first."""
        shown = list(self._recent)
        others = [kernel for kernel in self._ranking.top(_ELITE) if kernel not in self._recent]
        for _ in range(min(self._pool_size - len(shown), len(others))):
            index = softmax_choice([tree[kernel].speedup for kernel in others], rng)
            shown.append(others.pop(index))
        return Selection(ROOT_ID, "large", tuple(shown))
