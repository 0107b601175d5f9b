"""What every selection policy answers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from adaexplore.core.config import Settings
from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.search.traits import Traits
from adaexplore.search.tree import Tree, Vertex


@dataclass(frozen=True, slots=True)
class Selection:
    """Where the next step grows from, whether it is a large or a small one, and what it is shown.

    `shown` are ids of correct kernels for a large step; None leaves them to `pool.large_pool`. A
    small step is always shown its path (`pool.small_window`).
    """

    node_id: int
    step_kind: StepKind
    shown: tuple[int, ...] | None = None


class Policy(Protocol):
    """Picks the node to expand and the kind of step.

    What a policy remembers it has from `record` alone, which is told every recorded step in order:
    the same steps, the same steps under way and a generator in the same state give the same
    selection, which is what makes a resumed run continue identically. It never changes the tree,
    and it answers "large" for the root, where there is no kernel to change. Steps under way are in
    the tree as failures; of those that the machinery failed it is told nothing.
    """

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """The next step's place and kind; `rng` is this step's own generator (`step_rng`)."""
        ...

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Takes note of a step that is in the tree by now; nothing, where the tree says it all."""


def step_kind(vertex: Vertex, settings: Settings, rng: random.Random) -> StepKind:
    """Large at the root, else large with probability `p_large`."""
    if vertex.id == ROOT_ID:
        return "large"
    return "large" if rng.random() < settings.p_large else "small"
