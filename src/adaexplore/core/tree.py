"""Statistics of the search tree that selection needs, without sources or evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from adaexplore.core.node import ROOT_ID, StepKind

WRONG_REWARD = 0.05
"""Reward of a step whose candidate compiles and is wrong."""

Rank = tuple[bool, bool, float, float]
"""(compiled, correct, like-for-like speedup, estimate), as `evaluation.rank` gives it; larger is
better."""


@dataclass(slots=True)
class Vertex:
    """Statistics of one node. Read-only for everyone but `Tree`.

    `total` and `max` are the sum and maximum of the rewards recorded in the subtree, the vertex's
    own included; the root has no reward of its own. `visits` counts those rewards plus the steps in
    flight below, `pending` the latter alone. `children` are the recorded ones, `pending_children`
    counts the steps in flight that grow from this vertex, and `small_children` counts the small
    steps of both sorts. `component` is the nearest large step on the path to the root, the vertex
    itself included: it names the small-step component of the vertex, the subtree reachable from
    that large step by small edges only. `planned` is the number of items of the plan that a large
    step begins, 0 without one.
    """

    id: int
    parent_id: int | None
    step_kind: StepKind | None
    rank: Rank
    component: int
    visits: int = 0
    total: float = 0.0
    max: float = 0.0
    pending: int = 0
    children: list[int] = field(default_factory=list)
    pending_children: int = 0
    small_children: int = 0
    planned: int = 0

    @property
    def correct(self) -> bool:
        """True if the step's own kernel is correct."""
        return self.rank[1]

    @property
    def speedup(self) -> float:
        """Speedup of the step's own kernel; 0 if it failed or was not measured."""
        return self.rank[2]

    @property
    def log_speed(self) -> float:
        """`ln` of the speed of the step's own kernel; only differences within a run have meaning.

        The speed is the speedup, or 1 over the estimated time where nothing was measured; the
        logarithm is minus infinity where there is neither.
        """
        _, correct, speedup, estimate = self.rank
        if speedup > 0:
            return math.log(speedup)
        return -math.log(-estimate) if correct and -math.inf < estimate < 0 else -math.inf

    @property
    def width(self) -> int:
        """Number of children, recorded and in flight."""
        return len(self.children) + self.pending_children

    @property
    def mean(self) -> float:
        """Mean reward of the subtree, steps in flight counted as failures; 0 without visits."""
        if not self.visits:
            return 0.0
        return (self.total + self.pending * WRONG_REWARD) / self.visits

    def value(self, alpha: float) -> float:
        """Return `Q = alpha * max + (1 - alpha) * mean` of the rewards in the subtree."""
        top = max(self.max, WRONG_REWARD) if self.pending else self.max
        return alpha * top + (1 - alpha) * self.mean


class Tree:
    """Search tree that starts as the empty placeholder `ROOT_ID` and grows by `add`.

    Steps in flight (`begin`, `end`) count as visits without reward: a virtual loss, which directs
    the next step elsewhere (Chaslot et al. 2008, Parallel Monte-Carlo Tree Search). They are
    counted apart from rewards, so that `end` undoes `begin` exactly.

    `add`, `begin` and `end` cost O(depth); every look-up is O(1) or O(depth), which keeps searches
    of ten thousand steps cheap.
    """

    def __init__(self) -> None:
        root = Vertex(ROOT_ID, None, None, (False, False, 0.0, 0.0), component=ROOT_ID)
        self._vertices = {ROOT_ID: root}
        self._best_kernels: dict[int, int] = {}

    def __getitem__(self, node_id: int) -> Vertex:
        """Return the vertex `node_id`; raise `KeyError` if there is none."""
        return self._vertices[node_id]

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._vertices

    def __len__(self) -> int:
        """Number of recorded steps; the root placeholder does not count."""
        return len(self._vertices) - 1

    def add(
        self,
        node_id: int,
        parent_id: int,
        step_kind: StepKind,
        reward: float,
        rank: Rank,
        *,
        planned: int = 0,
    ) -> None:
        """Insert a step under `parent_id` and propagate its reward (>= 0) to the root.

        Raises `ValueError` if the id is taken, the parent is unknown, the reward is negative or not
        a number, or a small step is inserted under the root, which has no kernel to change.
        """
        if not reward >= 0:
            raise ValueError(f"node {node_id} has reward {reward}; it must be 0 or more")
        vertex = self._insert(node_id, parent_id, step_kind, rank)
        vertex.planned = planned
        parent = self._vertices[parent_id]
        parent.children.append(node_id)
        parent.small_children += step_kind == "small"
        for above in self._ancestry(node_id):
            above.visits += 1
            above.total += reward
            above.max = max(above.max, reward)
        best = self._best_kernels
        head = vertex.component
        if vertex.correct and (head not in best or rank > self._vertices[best[head]].rank):
            best[head] = node_id

    def add_unjudged(self, node_id: int, parent_id: int, step_kind: StepKind) -> None:
        """Insert a step whose candidate was never judged: the evaluator failed.

        The step counts nowhere and is not among its parent's children, so that no selection reaches
        it; steps that already grew from it keep their parent. Raises `ValueError` as `add` does.
        """
        self._insert(node_id, parent_id, step_kind, (False, False, 0.0, 0.0))

    def add_repeat(self, node_id: int, parent_id: int, step_kind: StepKind) -> None:
        """Insert a step that repeats an earlier kernel: a visit without success.

        The earlier step keeps the reward, and it is the one that is shown and expanded. Raises
        `ValueError` as `add` does.
        """
        self.add(node_id, parent_id, step_kind, WRONG_REWARD, (True, False, 0.0, 0.0))

    def begin(self, parent_id: int, step_kind: StepKind) -> None:
        """Count a step from `parent_id` as in flight; raise `KeyError` if the id is unknown."""
        self._count_pending(parent_id, step_kind, 1)

    def end(self, parent_id: int, step_kind: StepKind) -> None:
        """Undo one `begin`: the step is recorded by now, or was given up.

        Raises `ValueError` if no step is in flight there.
        """
        if not self._vertices[parent_id].pending_children:
            raise ValueError(f"no step is in flight at node {parent_id}")
        self._count_pending(parent_id, step_kind, -1)

    def path(self, node_id: int) -> list[int]:
        """Return the ids from the root (included) down to `node_id` (included)."""
        return [vertex.id for vertex in self._ancestry(node_id)][::-1]

    @property
    def best_kernels(self) -> Mapping[int, int]:
        """Best correct kernel of each small-step component that has one; the older of equals.

        Keyed by the large step that heads the component.
        """
        return self._best_kernels

    def components_on_path(self, node_id: int) -> list[int]:
        """Return the large steps on the path from the root to `node_id` (included), in order."""
        return [step for step in self.path(node_id) if self[step].step_kind == "large"]

    def _ancestry(self, node_id: int) -> Iterator[Vertex]:
        current: int | None = node_id
        while current is not None:
            vertex = self._vertices[current]
            yield vertex
            current = vertex.parent_id

    def _insert(self, node_id: int, parent_id: int, step_kind: StepKind, rank: Rank) -> Vertex:
        if node_id in self._vertices:
            raise ValueError(f"node {node_id} is already in the tree")
        if parent_id not in self._vertices:
            raise ValueError(f"node {node_id} names parent {parent_id}, which is not in the tree")
        if step_kind == "small" and parent_id == ROOT_ID:
            raise ValueError(f"node {node_id} is a small step under the root, which has no kernel")
        component = node_id if step_kind == "large" else self._vertices[parent_id].component
        vertex = Vertex(node_id, parent_id, step_kind, rank, component)
        self._vertices[node_id] = vertex
        return vertex

    def _count_pending(self, parent_id: int, step_kind: StepKind, change: int) -> None:
        parent = self._vertices[parent_id]
        parent.pending_children += change
        parent.small_children += change * (step_kind == "small")
        for above in self._ancestry(parent_id):
            above.visits += change
            above.pending += change
