"""PS: independent samples."""

from __future__ import annotations

import random

from adaexplore.core.config import Settings
from adaexplore.core.node import ROOT_ID
from adaexplore.core.policy import Policy, Selection
from adaexplore.core.tree import Tree


class ParallelSampling(Policy):
    """Best of N without context: every step is a large one from nothing (arXiv 2604.16625)."""

    def __init__(self, settings: Settings) -> None:
        """There is nothing to set."""

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """The root, with nothing to look at."""
        return Selection(ROOT_ID, "large", ())
