"""Plans, each carried out item by item on working code."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking


@dataclass(slots=True)
class _PlanState:
    """State of a plan that is not over.

    `kernel` is its last working kernel, or its first version while that is wrong. `item` counts the
    items that were carried out or skipped, `failures` the failed attempts at the next item, or at
    the first version.
    """

    kernel: int
    items: int
    item: int = 0
    failures: int = 0


class Stepwise(Policy):
    """Plans carried out as small edits, each verified before the next.

    After QiMeng-Kernel (arXiv 2511.20100), which separates the decision what to optimize from the
    code that does it, and writes the code one action at a time. There a model trained for it names
    the next action; here a large step from the root asks for a plan (`Vertex.planned`) and its
    first version, beside the `Config.pool_size` best kernels so far. Each small step carries out
    the next item on the last working kernel of its plan. The result becomes that kernel if it is
    correct and has lost at most the share `loss` of the speed. Otherwise the item has failed: after
    `tries` attempts it is skipped. A wrong first version is changed until it is correct, or the
    plan is given up after `tries` attempts in all. The oldest plan without a step in flight goes
    on; if there is none, a new plan begins. At most the first `items` of a plan count.
    """

    def __init__(
        self, settings: Config, *, items: int = 5, tries: int = 2, loss: float = 0.02
    ) -> None:
        self._settings = settings
        self._items = items
        self._tries = tries
        self._least_gain = math.log(1 - loss)
        self._ranking = Ranking()
        self._plans: dict[int, _PlanState] = {}

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Begin a plan, or take a plan one attempt further."""
        vertex = tree[node_id]
        self._ranking.add(vertex)
        if vertex.step_kind == "large" and vertex.planned:
            self._plans[node_id] = _PlanState(node_id, min(vertex.planned, self._items))
        plan = self._plans.get(vertex.component)
        if plan is None:
            return
        if node_id == plan.kernel:
            if not vertex.correct:
                self._fail(plan, tree)
        elif vertex.step_kind == "small" and vertex.parent_id == plan.kernel:
            self._attempt(plan, tree, node_id)
        if plan.item == plan.items:
            del self._plans[vertex.component]

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the next item of a plan, or a new plan beside the best kernels."""
        for plan in self._plans.values():
            if not tree[plan.kernel].pending_children:
                return Selection(plan.kernel, "small")
        return Selection(ROOT_ID, "large", tuple(self._ranking.top(self._settings.pool_size)))

    def _attempt(self, plan: _PlanState, tree: Tree, node_id: int) -> None:
        """Take the kernel of an attempt if it works."""
        vertex, base = tree[node_id], tree[plan.kernel]
        kept = not base.correct or vertex.log_speed >= base.log_speed + self._least_gain
        if vertex.correct and kept:
            plan.item += base.correct
            plan.kernel, plan.failures = node_id, 0
        else:
            self._fail(plan, tree)

    def _fail(self, plan: _PlanState, tree: Tree) -> None:
        """Count a failed attempt; skip the item, or give up a first version, after the last."""
        plan.failures += 1
        if plan.failures == self._tries:
            plan.item = plan.item + 1 if tree[plan.kernel].correct else plan.items
            plan.failures = 0
