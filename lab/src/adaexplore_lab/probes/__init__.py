"""What is tried on every Triton: programs that look right and fail, each with one that is.

Those of kind speed are right, and slow.
"""

from __future__ import annotations

from dataclasses import replace

from adaexplore_lab.probes.api import API
from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.language import LANGUAGE
from adaexplore_lab.probes.launch import LAUNCH
from adaexplore_lab.probes.matchers import MATCHERS
from adaexplore_lab.probes.numerics import NUMERICS
from adaexplore_lab.probes.resources import RESOURCES
from adaexplore_lab.probes.silent import SILENT
from adaexplore_lab.probes.speed import SPEED

PROBES: tuple[Probe, ...] = tuple(
    replace(probe, matcher=MATCHERS.get(probe.name))
    for probe in (*LANGUAGE, *API, *LAUNCH, *RESOURCES, *NUMERICS, *SILENT, *SPEED)
)
