"""The contract of a selection policy: where the search tree grows next."""

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
    """The node that the next step grows from, the kind of the step, and the kernels it is shown.

    `shown` are ids of correct kernels for a large step; None leaves them to `pool.large_pool`. A
    small step is always shown its path (`pool.small_window`).
    """

    node_id: int
    step_kind: StepKind
    shown: tuple[int, ...] | None = None


class Traits(Protocol):
    """Two views of a candidate.

    `cell` are coordinates in a grid of kinds of kernels, such as MAP-Elites keeps; `vector` is a
    point of length 1 (or less), and the distance of two points says how much their kernels differ.
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
    order: the same recorded steps, the same steps under way and a generator in the same state give
    the same selection. A resumed run continues identically for that reason. A policy never changes
    the tree, and it answers "large" for the root, which has no kernel to change. Steps under way
    are in the tree as failures. Steps that failed for infrastructure reasons are never recorded.
    """

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the place and the kind of the next step; `rng` is the generator of this step."""
        ...

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Take note of a step that the tree holds by now."""
