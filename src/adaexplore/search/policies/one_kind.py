"""Any policy, with steps of one kind alone."""

from __future__ import annotations

import random
from typing import Literal

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking


class OneKind(Policy):
    """A policy whose steps are all large, or all small: an ablation of the other kind.

    The policy chooses the kernel. A small step that becomes large has the pool of its path. A large
    step that becomes small changes the same kernel; from the root, which has none, it changes the
    best kernel so far, or the latest where none is correct. Steps from the root stay large until
    the first is recorded.
    """

    def __init__(self, policy: Policy, kind: Literal["large", "small"]) -> None:
        self._policy = policy
        self._kind = kind
        self._ranking = Ranking()
        self._latest = ROOT_ID

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Pass the step on, and rank its kernel."""
        self._policy.record(tree, node_id, traits)
        self._latest = node_id
        self._ranking.add(tree[node_id])

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the choice of the policy, with the other kind replaced."""
        chosen = self._policy.select(tree, rng)
        if chosen.step_kind == self._kind:
            return chosen
        if self._kind == "large":
            return Selection(chosen.node_id, "large")
        node_id = chosen.node_id or next(iter(self._ranking.top(1)), self._latest)
        return chosen if node_id == ROOT_ID else Selection(node_id, "small")
