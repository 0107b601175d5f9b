"""Decisions that several policies share."""

from __future__ import annotations

import random

from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.core.settings.config import Config
from adaexplore.core.tree import Vertex


def step_kind(vertex: Vertex, settings: Config, rng: random.Random) -> StepKind:
    """Return "large" at the root, else "large" with probability `p_large`."""
    if vertex.id == ROOT_ID:
        return "large"
    return "large" if rng.random() < settings.p_large else "small"
