"""What is tried on every Triton: programs that look right and fail, each with one that is."""

from __future__ import annotations

from adaexplore.memory.probes.api import API
from adaexplore.memory.probes.base import Probe
from adaexplore.memory.probes.language import LANGUAGE
from adaexplore.memory.probes.launch import LAUNCH
from adaexplore.memory.probes.numerics import NUMERICS
from adaexplore.memory.probes.resources import RESOURCES
from adaexplore.memory.probes.silent import SILENT

PROBES: tuple[Probe, ...] = (*LANGUAGE, *API, *LAUNCH, *RESOURCES, *NUMERICS, *SILENT)
