"""A priority queue that holds an epsilon-net."""

from __future__ import annotations

import math
import random

from adaexplore.core.config import Settings
from adaexplore.core.node import ROOT_ID
from adaexplore.core.policy import Policy, Selection, Traits, Vector
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Order, order
from adaexplore.search.policy import step_kind


class EpsilonNet(Policy):
    """Steps go round the `candidates` best of a queue in which no two kernels look alike.

    After POLCA (arXiv 2603.14769; github.com/xuanfeiren/Trace, with its settings for KernelBench):
    a kernel nearer than `epsilon` to one of the queue is left out. Here it takes that one's place
    if it is faster, since kernels that read alike need not be. Priority is the kernel's speed, that
    of failures 0; the queue holds `memory` kernels. Distances are between `Traits.vector`s in place
    of a model's embeddings. Its summarizer is `search.failure_summary`.
    """

    def __init__(
        self,
        settings: Settings,
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
        """Takes the kernel into the queue if nothing like it is there, or nothing as fast."""
        entry = (order(tree[node_id]), traits.vector)
        alike = [each for each in self._queue if math.dist(each[1], entry[1]) <= self._epsilon]
        if alike and entry > min(alike):
            return
        self._queue = [each for each in self._queue if each not in alike]
        self._queue = sorted([*self._queue, entry])[: self._memory]

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """The candidate with the fewest children; the root until there are enough candidates."""
        if len(self._queue) < self._candidates:
            return Selection(ROOT_ID, "large")
        candidates = [place[-1] for place, _ in self._queue[: self._candidates]]
        chosen = min(candidates, key=lambda node_id: tree[node_id].width)
        kind = step_kind(tree[chosen], self._settings, rng)
        if kind == "small":
            return Selection(chosen, kind)
        pool = [kernel for kernel in candidates if tree[kernel].correct]
        return Selection(chosen, kind, tuple(pool[: self._settings.pool_size]))
