"""The search tree as plain statistics: no sources, no evaluations, only what selection needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from adaexplore.node import ROOT_ID, StepKind

Rank = tuple[bool, bool, float, float]
"""(compiled, correct, like-for-like speedup, guess), as `evaluation.rank` gives it; larger is
better."""


@dataclass(slots=True)
class Vertex:
    """One place in the tree. Read it; only `Tree.add` changes it.

    `visits`, `total` and `max` count the rewards recorded in the subtree, the vertex's own
    included; the root has no reward of its own. `component` is the nearest large step on the path
    to the root, the vertex itself counted: it names the small-step component, the subtree reachable
    from that large step by small edges only, which the vertex belongs to.
    """

    id: int
    parent_id: int | None
    step_kind: StepKind | None
    rank: Rank
    component: int
    visits: int = 0
    total: float = 0.0
    max: float = 0.0
    children: list[int] = field(default_factory=list)
    small_children: int = 0

    @property
    def mean(self) -> float:
        """Mean reward of the subtree; 0 before any reward."""
        return self.total / self.visits if self.visits else 0.0

    def value(self, alpha: float) -> float:
        """`Q = alpha * max + (1 - alpha) * mean` of the rewards in the subtree."""
        return alpha * self.max + (1 - alpha) * self.mean


class Tree:
    """A tree that starts as the empty placeholder `ROOT_ID` and grows by `add`.

    `add` costs O(depth); every look-up is O(1) or O(depth), so that a search of ten thousand steps
    spends its time on kernels.
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
        if node_id in self._vertices:
            raise ValueError(f"node {node_id} is already in the tree")
        if parent_id not in self._vertices:
            raise ValueError(f"node {node_id} names parent {parent_id}, which is not in the tree")
        if step_kind == "small" and parent_id == ROOT_ID:
            raise ValueError(f"node {node_id} is a small step under the root, which has no kernel")
        if not reward >= 0:
            raise ValueError(f"node {node_id} has reward {reward}; it must be 0 or more")
        parent = self._vertices[parent_id]
        component = node_id if step_kind == "large" else parent.component
        self._vertices[node_id] = Vertex(node_id, parent_id, step_kind, rank, component)
        parent.children.append(node_id)
        parent.small_children += step_kind == "small"
        for vertex in self._ancestry(node_id):
            vertex.visits += 1
            vertex.total += reward
            vertex.max = max(vertex.max, reward)
        _, correct, _, _ = rank
        best = self._best_kernels
        if correct and (component not in best or rank > self._vertices[best[component]].rank):
            best[component] = node_id

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
