"""IRL: large steps with the most recent kernels in context."""

from __future__ import annotations

import random
from collections import deque

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree


class RecentKernels(Policy):
    """Iterative refinement by large steps, with the last kernels in context (arXiv 2604.16625).

    The context holds the last `Config.pool_size` kernels, failed ones with their errors too.
    """

    def __init__(self, settings: Config) -> None:
        self._recent: deque[int] = deque(maxlen=settings.pool_size)

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Remember the kernel, correct or not."""
        self._recent.append(node_id)

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the root with the recent kernels, oldest first."""
        return Selection(ROOT_ID, "large", tuple(self._recent))
