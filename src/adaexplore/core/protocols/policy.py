"""Contract of a selection policy: where the search tree grows next."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from adaexplore.core.node import StepKind
from adaexplore.core.tree import Tree

Cell = tuple[int, ...]
Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """Node that the next step grows from, kind of the step, and kernels that it is shown.

    `pool` holds ids of kernels for a large step, correct ones unless the policy is about showing
    failures too; None leaves the choice to `search.large_pool`. A small step is always shown its
    path (`search.small_window`).
    """

    node_id: int
    step_kind: StepKind
    pool: tuple[int, ...] | None = None


class Traits(Protocol):
    """Behaviour descriptors of a candidate, for policies that keep different kernels apart.

    `cell` holds the candidate's coordinates in a MAP-Elites grid. `vector` is a point of length at
    most 1; the distance of two points measures the difference of their kernels.
    """

    @property
    def cell(self) -> Cell:
        """Coordinates in the grid."""
        ...

    @property
    def vector(self) -> Vector:
        """The point."""
        ...


class Policy(Protocol):
    """Picks the node to expand and the kind of step.

    A policy remembers only what `record` told it, and `record` receives every recorded step in
    order: the same recorded steps, the same steps in flight and a generator in the same state give
    the same selection. A resumed run continues identically for that reason. A policy never changes
    the tree, and it answers "large" for the root, which has no kernel to change. Steps in flight
    are in the tree as failures. Steps that failed for infrastructure reasons are never recorded.
    """

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the node and the kind of the next step; `rng` is the generator of this step."""
        ...

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Take note of a recorded step, which is in the tree by now. The default does nothing."""
