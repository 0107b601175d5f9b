"""Search policies against landscapes: what a search would find, at no cost.

    landscape = SYNTHETIC["families"]
    contender = parse_contender("uct:reward=published")
    found = run(contender, landscape, seed=0, steps=100)      # best so far, after every step

A landscape makes worlds, one for each seed, and a world answers what a step from some kernel comes
to. Policies, trees, rewards and pools are those of a real search (`adaexplore.search`).
"""

from __future__ import annotations

from adaexplore_lab.simulate.contenders import Contender, parse_contender
from adaexplore_lab.simulate.fitted import FITS, Fitted, fitted_landscapes
from adaexplore_lab.simulate.landscape import Landscape, SimulatedKernel, World
from adaexplore_lab.simulate.recorded import (
    RecordedRun,
    RecordedStep,
    read_runs,
    recorded_run,
    runs_json,
)
from adaexplore_lab.simulate.runner import Experiment, Outcome, run, simulate
from adaexplore_lab.simulate.statistics import ContenderResult, checkpoints, standings
from adaexplore_lab.simulate.synthetic import SYNTHETIC, parse_terrain

__all__ = [
    "FITS",
    "SYNTHETIC",
    "Contender",
    "ContenderResult",
    "Experiment",
    "Fitted",
    "Landscape",
    "Outcome",
    "RecordedRun",
    "RecordedStep",
    "SimulatedKernel",
    "World",
    "checkpoints",
    "fitted_landscapes",
    "parse_contender",
    "parse_terrain",
    "read_runs",
    "recorded_run",
    "run",
    "runs_json",
    "simulate",
    "standings",
]
