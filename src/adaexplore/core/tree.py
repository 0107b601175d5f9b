"""The search tree as plain statistics: no sources, no evaluations, only what selection needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from adaexplore.core.node import ROOT_ID, StepKind

WRONG_REWARD = 0.05
"""The reward of a step whose candidate compiles and is wrong."""

Rank = tuple[bool, bool, float, float]
"""(compiled, correct, like-for-like speedup, guess), as `evaluation.rank` gives it; larger is
better."""


@dataclass(slots=True)
class Vertex:
    """One place in the tree. Read it; only `Tree` changes it.

    `total` and `max` are of the rewards recorded in the subtree, the vertex's own included; the
    root has no reward of its own. `visits` counts those rewards and the steps under way below,
    `pending` the latter alone. `children` are the recorded ones; `growing` counts the steps under
    way that grow from here, and `small_children` the small steps of both sorts. `component` is the
    nearest large step on the path to the root, the vertex itself counted: it names the small-step
    component, the subtree reachable from that large step by small edges only, which the vertex
    belongs to.
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
    growing: int = 0
    small_children: int = 0

    @property
    def correct(self) -> bool:
        """Whether the step's own kernel is right."""
        return self.rank[1]

    @property
    def speedup(self) -> float:
        """Of the step's own kernel; 0 if it failed or was not measured."""
        return self.rank[2]

    @property
    def log_speed(self) -> float:
        """`ln` of how fast the step's own kernel is; only differences within a run mean anything.

        Of its speedup, or where nothing was measured, of one over its estimated time; minus
        infinity where there is neither.
        """
        _, correct, speedup, guess = self.rank
        if speedup > 0:
            return math.log(speedup)
        return -math.log(-guess) if correct and -math.inf < guess < 0 else -math.inf

    @property
    def width(self) -> int:
        """Children, recorded and under way."""
        return len(self.children) + self.growing

    @property
    def mean(self) -> float:
        """Mean reward of the subtree, with steps under way as failures; 0 before any."""
        if not self.visits:
            return 0.0
        return (self.total + self.pending * WRONG_REWARD) / self.visits

    def value(self, alpha: float) -> float:
        """`Q = alpha * max + (1 - alpha) * mean` of the rewards in the subtree."""
        top = max(self.max, WRONG_REWARD) if self.pending else self.max
        return alpha * top + (1 - alpha) * self.mean


class Tree:
    """A tree that starts as the empty placeholder `ROOT_ID` and grows by `add`.

    Steps under way (`begin`, `end`) count as visits that came to nothing: a virtual loss, which
    turns the next step elsewhere (Chaslot et al. 2008, Parallel Monte-Carlo Tree Search). They are
    counted apart from rewards, so that one that ends leaves no trace.

    `add`, `begin` and `end` cost O(depth); every look-up is O(1) or O(depth), so that a search of
    ten thousand steps spends its time on kernels.
    """

    def __init__(self) -> None:
        root = Vertex(ROOT_ID, None, None, (False, False, 0.0, 0.0), component=ROOT_ID)
        self._vertices = {ROOT_ID: root}
        self._best_kernels: dict[int, int] = {}

    def __getitem__(self, node_id: int) -> Vertex:
        """The vertex `node_id`; raises `KeyError` if there is none."""
        return self._vertices[node_id]

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._vertices

    def __len__(self) -> int:
        """Number of steps recorded; the root placeholder is none."""
        return len(self._vertices) - 1

    def add(
        self, node_id: int, parent_id: int, step_kind: StepKind, reward: float, rank: Rank
    ) -> None:
        """Hangs a step under `parent_id` and carries its reward (>= 0) up to the root.

        Raises `ValueError` if the id is taken, the parent is unknown, the reward is negative or not
        a number, or a small step is hung under the root, where there is no kernel to change.
        """
        if not reward >= 0:
            raise ValueError(f"node {node_id} has reward {reward}; it must be 0 or more")
        vertex = self._hang(node_id, parent_id, step_kind, rank)
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
        """Takes in a step that says nothing about its candidate: the machinery failed.

        It is nobody's child and counts nowhere, so that nothing leads to it; what grew from it all
        the same has its place. Raises `ValueError` as `add` does.
        """
        self._hang(node_id, parent_id, step_kind, (False, False, 0.0, 0.0))

    def add_repeat(self, node_id: int, parent_id: int, step_kind: StepKind) -> None:
        """Hangs a step whose kernel was there before: a visit that came to nothing.

        The first one has the credit, is shown and is grown from. Raises `ValueError` as `add` does.
        """
        self.add(node_id, parent_id, step_kind, WRONG_REWARD, (True, False, 0.0, 0.0))

    def begin(self, parent_id: int, step_kind: StepKind) -> None:
        """Counts a step from `parent_id` as under way; raises `KeyError` if that is unknown."""
        self._count_pending(parent_id, step_kind, 1)

    def end(self, parent_id: int, step_kind: StepKind) -> None:
        """Takes back what `begin` counted: the step is recorded by now, or comes to nothing.

        Raises `ValueError` if no step is under way there.
        """
        if not self._vertices[parent_id].growing:
            raise ValueError(f"no step is under way at node {parent_id}")
        self._count_pending(parent_id, step_kind, -1)

    def path(self, node_id: int) -> list[int]:
        """Ids from the root (included) down to `node_id` (included)."""
        return [vertex.id for vertex in self._ancestry(node_id)][::-1]

    @property
    def best_kernels(self) -> Mapping[int, int]:
        """The best correct kernel of each small-step component that has one.

        Keyed by the large step that heads the component; the older of equals.
        """
        return self._best_kernels

    def components_on_path(self, node_id: int) -> list[int]:
        """Large steps on the path from the root to `node_id` (included), topmost first."""
        return [step for step in self.path(node_id) if self[step].step_kind == "large"]

    def _ancestry(self, node_id: int) -> Iterator[Vertex]:
        current: int | None = node_id
        while current is not None:
            vertex = self._vertices[current]
            yield vertex
            current = vertex.parent_id

    def _hang(self, node_id: int, parent_id: int, step_kind: StepKind, rank: Rank) -> Vertex:
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
        parent.growing += change
        parent.small_children += change * (step_kind == "small")
        for above in self._ancestry(parent_id):
            above.visits += change
            above.pending += change
