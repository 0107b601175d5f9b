"""Archive of elites, expanded where steps have gained most."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict

from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.core.protocols.policy import Cell, Policy, Selection, Traits
from adaexplore.core.settings.config import FOUNDERS, Config
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking
from adaexplore.search.pool import diverse_pool

_PRIOR_GAIN = 0.1
_PRIOR_STEPS = 2.0
_MIN_SHARE = 0.1


class Archive(Policy):
    """Archive of fast and diverse kernels, expanded by the kind of step that gains most.

    After Kernel-Smith (arXiv 2603.28342), whose population is an archive of top-performing and
    diverse programs, and whose training keeps the steps that stay correct and gain much. Here the
    gain decides in the search itself. The gain of a step is `ln` of the ratio of speedups, 0 for a
    step that fails or loses. The score of a kernel is its `ln` speedup plus `reach` times the gain
    expected of a step from it, which shrinks with every step without a gain. The kind of step is
    drawn in proportion to the mean gain of each kind, with at least a tenth for either.

    `top`: number of fastest kernels in the archive, beside the fastest kernel of every
    `Traits.cell` (the elites). `reach`: weight of the expected gain. The first `Config.founders`
    steps are large steps from the root. A founder counts once it is recorded: with several steps in
    flight, an earlier choice would expand the first kernel to arrive instead of the best. The
    constants were tuned by simulation (docs/search.md).
    """

    def __init__(self, settings: Config, *, top: int = 10, reach: float = 1.0) -> None:
        self._settings = settings
        self._founders = settings.founders or FOUNDERS
        self._top = top
        self._reach = reach
        self._ranking = Ranking()
        self._cells: dict[Cell, int] = {}
        self._traits: dict[int, Traits] = {}
        self._gains: defaultdict[int, float] = defaultdict(float)
        self._kind_gains: dict[StepKind, float] = {"large": 0.0, "small": 0.0}
        self._kind_steps: Counter[StepKind] = Counter()

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Credit the gain to the parent and to the kind of step; archive the kernel."""
        vertex = tree[node_id]
        parent = tree[vertex.parent_id or ROOT_ID]
        kind: StepKind = vertex.step_kind or "large"
        if parent.log_speed > -math.inf and kind != "tune":
            gain = max(vertex.log_speed - parent.log_speed, 0.0)
            self._gains[parent.id] += gain
            self._kind_gains[kind] += gain
            self._kind_steps[kind] += 1
        if vertex.log_speed > -math.inf:
            self._ranking.add(vertex)
            self._traits[node_id] = traits
            best = self._cells.setdefault(traits.cell, node_id)
            if vertex.rank > tree[best].rank:
                self._cells[traits.cell] = node_id

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the kernel with the best score and the kind of step to take from it."""
        top = self._ranking.top(self._top)
        if not top or len(tree[ROOT_ID].children) < self._founders:
            return Selection(ROOT_ID, "large", ())
        archive = list(dict.fromkeys([*top, *self._cells.values()]))
        mean_gain = self._mean_gain()
        chosen = max(archive, key=lambda kernel: self._score(tree, kernel, mean_gain))
        if rng.random() >= self._share_of_large():
            return Selection(chosen, "small")
        return Selection(chosen, "large", self._pool(tree, chosen, top, rng))

    def _mean_gain(self) -> float:
        total = sum(self._kind_gains.values()) + _PRIOR_STEPS * _PRIOR_GAIN
        return total / (sum(self._kind_steps.values()) + _PRIOR_STEPS)

    def _score(self, tree: Tree, kernel: int, mean_gain: float) -> float:
        gain = self._gains[kernel] + _PRIOR_STEPS * mean_gain
        expected = gain / (tree[kernel].width + _PRIOR_STEPS)
        return tree[kernel].log_speed + self._reach * expected

    def _share_of_large(self) -> float:
        rates = {
            kind: (gain + _PRIOR_STEPS * _PRIOR_GAIN) / (self._kind_steps[kind] + _PRIOR_STEPS)
            for kind, gain in self._kind_gains.items()
        }
        share = rates["large"] / (rates["large"] + rates["small"])
        return min(max(share, _MIN_SHARE), 1 - _MIN_SHARE)

    def _pool(self, tree: Tree, chosen: int, top: list[int], rng: random.Random) -> tuple[int, ...]:
        """Return the chosen kernel, the fastest one, and fast kernels of other cells."""
        pool = list(dict.fromkeys([chosen, top[0]]))
        others = [kernel for kernel in self._cells.values() if kernel not in pool]
        size = self._settings.pool_size
        return tuple(diverse_pool(tree, pool, others, self._traits, size, rng))
