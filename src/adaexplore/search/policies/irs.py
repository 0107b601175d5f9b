"""IRS: one chain of small steps."""

from __future__ import annotations

import random

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree


class SmallSteps(Policy):
    """Iterative refinement by small steps (arXiv 2604.16625).

    The search makes one large step; each further small step changes the latest kernel, correct or
    not.
    """

    def __init__(self, settings: Config) -> None:
        self._last = ROOT_ID

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """Make this step the end of the chain."""
        self._last = node_id

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the end of the chain."""
        return Selection(self._last, "small" if self._last else "large")
