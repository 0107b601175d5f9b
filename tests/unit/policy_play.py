"""A policy and the tree that a test grows for it, step by step."""

import random
from collections import Counter
from dataclasses import dataclass

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import POLICIES, Policy, Selection, Tree


@dataclass(frozen=True)
class FakeTraits:
    cell: tuple[int, ...] = (0, 0)
    vector: tuple[float, ...] = (1.0, 0.0)


class Play:
    """A policy, or that of a name, with what was recorded in it."""

    def __init__(
        self, policy: str | Policy, settings: Config | None = None, **parameters: float
    ) -> None:
        if isinstance(policy, str):
            policy = POLICIES[policy](settings or Config(), **parameters)
        self.policy = policy
        self.tree = Tree()

    def add(
        self,
        speedup: float | None,
        parent: int = ROOT_ID,
        kind: str = "",
        *,
        planned: int = 0,
        cell: tuple[int, ...] = (0, 0),
        vector: tuple[float, ...] = (1.0, 0.0),
    ) -> int:
        """Record a step; None is a failure. From the root it is large, elsewhere small."""
        node_id = len(self.tree) + 1
        kind = kind or ("small" if parent else "large")
        rank = (True, speedup is not None, speedup or 0.0, 0.0)
        self.tree.add(node_id, parent, kind, speedup or 0.05, rank, planned=planned)
        self.policy.record(self.tree, node_id, FakeTraits(cell, vector))
        return node_id

    def grow(self, *speedups: float | None) -> list[int]:
        """Record steps where the policy chooses them; return their parents."""
        parents = []
        for speedup in speedups:
            step = self.select()
            parents.append(step.node_id)
            self.add(speedup, step.node_id, step.step_kind)
        return parents

    def select(self, seed: int = 0) -> Selection:
        """Return the next step."""
        return self.policy.select(self.tree, random.Random(seed))

    def selections(self, count: int) -> list[Selection]:
        """Return the next step with each of `count` seeds."""
        return [self.select(seed) for seed in range(count)]

    def places(self, count: int) -> Counter[int]:
        """Return how often each node is chosen with `count` seeds."""
        return Counter(step.node_id for step in self.selections(count))
