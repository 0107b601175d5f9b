"""What is tried on every Triton: programs that look right and fail, each with one that is."""

from __future__ import annotations

from adaexplore.memory.probes.base import Probe
from adaexplore.memory.probes.language import LANGUAGE

PROBES: tuple[Probe, ...] = (*LANGUAGE,)
