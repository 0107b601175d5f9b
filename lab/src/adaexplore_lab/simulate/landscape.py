"""Landscapes and worlds: the surroundings of a simulated search."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adaexplore.core import Cell, Evaluation, Failed, Passed, Status, StepKind, Timing, Vector

_HALF_95 = 1.96  # standard deviations from the middle of a 95 % interval to its ends


@dataclass(frozen=True, slots=True)
class Look:
    """Traits of a simulated kernel (see `search.traits.Traits`)."""

    cell: Cell
    vector: Vector


@dataclass(frozen=True, slots=True)
class SimulatedKernel:
    """A simulated candidate.

    `speedup` is the true one, `measured` what the evaluator says; both 0 for one that failed.
    `deviation`, of `ln` of the measurement, is what the evaluator's interval says, whatever the
    truth. `state` is the world's own. Over eager a speedup is `over_eager` times as much.
    """

    status: Status
    speedup: float
    measured: float
    look: Look
    state: Any
    deviation: float = 0.0
    over_eager: float = 1.0

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation that a search gets."""
        if self.status != "passed":
            return Failed(self.status, "simulated")
        measured = self.measured
        over_eager = measured * self.over_eager
        baselines = {"eager": over_eager, "compile": measured}
        spread = math.exp(_HALF_95 * self.deviation)
        interval = (measured / spread, measured * spread)
        timing = Timing(1.0, (1.0, 1.0), baselines, measured, interval, over_eager, 1)
        return Passed("fp32", 0.0, timing)


class World(Protocol):
    """One problem. `optimum` is the highest true speedup there is, as far as is known."""

    @property
    def optimum(self) -> float:
        """The highest true speedup."""
        ...

    def grow(
        self,
        parent: SimulatedKernel | None,
        step_kind: StepKind,
        shown: Sequence[SimulatedKernel],
        rng: random.Random,
    ) -> SimulatedKernel:
        """Return the kernel of a step; `parent` is None for a step from the reference."""
        ...

    def measure(self, kernel: SimulatedKernel, rng: random.Random) -> SimulatedKernel:
        """A correct kernel, measured anew."""
        ...


class Landscape(Protocol):
    """Worlds of one kind. The same seed gives the same world."""

    @property
    def name(self) -> str:
        """Name of the landscape on the command line."""
        ...

    @property
    def about(self) -> str:
        """In one line, what it is like."""
        ...

    def world(self, seed: int) -> World:
        """The world of that number."""
        ...
