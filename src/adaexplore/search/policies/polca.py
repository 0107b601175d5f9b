"""Priority queue over an epsilon-net of kernels (POLCA)."""

from __future__ import annotations

import math
import random

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits, Vector
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Order, order
from adaexplore.search.policy import step_kind


class EpsilonNet(Policy):
    """Priority queue in which no two kernels lie within `epsilon`; steps visit its best in turn.

    After POLCA (arXiv 2603.14769; github.com/xuanfeiren/Trace, with its settings for KernelBench),
    which leaves out a kernel that lies within `epsilon` of one in the queue. Here the faster of the
    two is kept, because kernels with similar sources may differ in speed. The priority is the
    kernel's speed, 0 for a failure. `candidates`: number of best entries that steps visit in turn.
    `memory`: capacity of the queue. Distances are those of `Traits.vector`, in place of a model's
    embeddings. POLCA's summarizer is `Config.summary`.
    """

    def __init__(
        self,
        settings: Config,
        *,
        epsilon: float = 0.02,
        candidates: int = 5,
        memory: int = 512,
    ) -> None:
        self._settings = settings
        self._epsilon = epsilon
        self._candidates = candidates
        self._memory = memory
        self._queue: list[tuple[Order, Vector]] = []

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Queue the kernel unless a faster one lies within `epsilon`."""
        entry = (order(tree[node_id]), traits.vector)
        similar = [each for each in self._queue if math.dist(each[1], entry[1]) <= self._epsilon]
        if similar and entry > min(similar):
            return
        self._queue = [each for each in self._queue if each not in similar]
        self._queue = sorted([*self._queue, entry])[: self._memory]

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the candidate with the fewest children; the root until the queue has enough."""
        if len(self._queue) < self._candidates:
            return Selection(ROOT_ID, "large")
        candidates = [place[-1] for place, _ in self._queue[: self._candidates]]
        chosen = min(candidates, key=lambda node_id: tree[node_id].width)
        kind = step_kind(tree[chosen], self._settings, rng)
        if kind == "small":
            return Selection(chosen, kind)
        pool = [kernel for kernel in candidates if tree[kernel].correct]
        return Selection(chosen, kind, tuple(pool[: self._settings.pool_size]))
