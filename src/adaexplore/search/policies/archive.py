"""An archive whose kernels are grown by what steps from them have gained."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict

from adaexplore.core.config import FOUNDERS, Settings
from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.core.policy import Cell, Policy, Selection, Traits
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import Ranking
from adaexplore.search.pool import diverse_pool

_PRIOR_GAIN = 0.1
_PRIOR_STEPS = 2.0
_RAREST = 0.1


class Archive(Policy):
    """Top and diverse_pool kernels, grown where and by the kind of step that gains most.

    After Kernel-Smith (arXiv 2603.28342), whose population is an archive of top-performing and
    diverse programs, and whose training keeps the steps that stay correct and gain much. Here that
    gain, `ln` of the ratio of speedups and 0 for a step that fails or loses, decides in the search
    itself: a kernel's score is its `ln` speedup and `reach` times the gain expected of a step from
    it, which shrinks with every step that came to nothing; the kind of step is drawn by what its
    kind has gained so far, neither ever below a tenth. The archive holds the `top` fastest kernels
    and the fastest of every `Traits.cell`; the first `Settings.founders` steps are
    large ones from nothing. A founder counts once it is recorded: with several steps under way,
    choosing sooner would grow the first to arrive, not the best. The constants are ours, tuned by
    simulation (docs/search.md).
    """

    def __init__(self, settings: Settings, *, top: int = 10, reach: float = 1.0) -> None:
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
        """Credits the step to its parent and kind; archives its kernel."""
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
        """The kernel with the best score, and what to do with it."""
        top = self._ranking.top(self._top)
        if not top or len(tree[ROOT_ID].children) < self._founders:
            return Selection(ROOT_ID, "large", ())
        steps = sum(self._kind_steps.values())
        usual = sum(self._kind_gains.values()) + _PRIOR_STEPS * _PRIOR_GAIN
        usual /= steps + _PRIOR_STEPS

        def score(kernel: int) -> float:
            expected = (self._gains[kernel] + _PRIOR_STEPS * usual) / (
                tree[kernel].width + _PRIOR_STEPS
            )
            return tree[kernel].log_speed + self._reach * expected

        archive = list(dict.fromkeys([*top, *self._cells.values()]))
        chosen = max(archive, key=score)
        if rng.random() >= self._share_of_large():
            return Selection(chosen, "small")
        return Selection(chosen, "large", self._pool(tree, chosen, top, rng))

    def _share_of_large(self) -> float:
        rates = {
            kind: (gain + _PRIOR_STEPS * _PRIOR_GAIN) / (self._kind_steps[kind] + _PRIOR_STEPS)
            for kind, gain in self._kind_gains.items()
        }
        share = rates["large"] / (rates["large"] + rates["small"])
        return min(max(share, _RAREST), 1 - _RAREST)

    def _pool(self, tree: Tree, chosen: int, top: list[int], rng: random.Random) -> tuple[int, ...]:
        """The chosen kernel, the fastest, and others of other cells that are fast and unlike."""
        pool = list(dict.fromkeys([chosen, top[0]]))
        others = [kernel for kernel in self._cells.values() if kernel not in pool]
        size = self._settings.pool_size
        return tuple(diverse_pool(tree, pool, others, self._traits, size, rng))
