"""What every selection policy answers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from adaexplore.node import StepKind
from adaexplore.search.tree import Tree


@dataclass(frozen=True, slots=True)
class Selection:
    """Where the next step grows from, and whether it is a large or a small one."""

    node_id: int
    step_kind: StepKind


class Policy(Protocol):
    """Picks the node to expand and the kind of step.

    A policy keeps no state between calls: the same tree and a generator in the same state give the
    same selection, which is what makes a resumed run continue identically. It never changes the
    tree, and it answers "large" for the root, where there is no kernel to change.
    """

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """The next step's place and kind; `rng` is this step's own generator (`step_rng`)."""
        ...
