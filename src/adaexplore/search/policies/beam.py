"""Beam search."""

from __future__ import annotations

import random

from adaexplore.core.node import ROOT_ID
from adaexplore.core.protocols.policy import Policy, Selection, Traits
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Tree
from adaexplore.search.policies.ranking import order
from adaexplore.search.policy import step_kind


class Beam(Policy):
    """Beam search by generations: `branch` children a kernel, then the best `width` are kept.

    Lowerre 1976, The HARPY Speech Recognition System; for accelerator kernels AccelOpt (arXiv
    2511.15915). The kernels of the beam may stay in it (elitism), so that a generation of failures
    loses nothing. The first generation consists of large steps from the root: `width * branch` of
    them, or as many as it takes to find a correct kernel. The constants were tuned by simulation
    (docs/search.md).
    """

    def __init__(self, settings: Config, *, width: int = 2, branch: int = 4) -> None:
        self._settings = settings
        self._width = width
        self._branch = branch
        self._beam = [ROOT_ID]
        self._quota = {ROOT_ID: width * branch}
        self._offspring: list[int] = []

    def record(self, tree: Tree, node_id: int, traits: Traits) -> None:
        """End the generation if this was its last child."""
        self._offspring.append(node_id)
        if any(len(tree[member].children) < self._quota[member] for member in self._beam):
            return
        kernels = [kernel for kernel in self._beam + self._offspring if tree[kernel].correct]
        if not kernels:
            return
        self._offspring = []
        self._beam = sorted(kernels, key=lambda kernel: order(tree[kernel]))
        del self._beam[self._width :]
        self._quota = {member: len(tree[member].children) + self._branch for member in self._beam}

    def select(self, tree: Tree, rng: random.Random) -> Selection:
        """Return the member that lacks most children of this generation; the best of equals."""
        member = max(self._beam, key=lambda kernel: self._quota[kernel] - tree[kernel].width)
        return Selection(member, step_kind(tree[member], self._settings, rng))
