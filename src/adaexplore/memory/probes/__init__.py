"""What is tried on every Triton: programs that look right and fail, each with one that is.

Those of kind speed are right, and slow.
"""

from __future__ import annotations

from dataclasses import replace

from adaexplore.memory.probes.api import API
from adaexplore.memory.probes.base import Probe
from adaexplore.memory.probes.language import LANGUAGE
from adaexplore.memory.probes.launch import LAUNCH
from adaexplore.memory.probes.matchers import MATCHERS
from adaexplore.memory.probes.numerics import NUMERICS
from adaexplore.memory.probes.resources import RESOURCES
from adaexplore.memory.probes.silent import SILENT
from adaexplore.memory.probes.speed import SPEED

PROBES: tuple[Probe, ...] = tuple(
    replace(probe, matcher=MATCHERS.get(probe.name))
    for probe in (*LANGUAGE, *API, *LAUNCH, *RESOURCES, *NUMERICS, *SILENT, *SPEED)
)
