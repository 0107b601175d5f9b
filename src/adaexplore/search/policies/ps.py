"""PS: independent samples."""

from __future__ import annotations

import random

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree


class ParallelSampling(Policy):
    """Best of N: every step is a large step from the root without context (arXiv 2604.16625)."""

    def __init__(self, settings: Config) -> None:
        """Take the settings, like every policy; none of them applies."""

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the root with an empty context."""
        return Selection(ROOT_ID, "large", ())
