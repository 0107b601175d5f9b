"""Landscapes fitted to recorded runs: one for each problem, fitted to the steps of all of them.

One search records few steps, so what comes of a step is learned from all problems together, in
units that are the same for each: a kernel's *gap* is how far, in `ln` of the speedup, it is from
the best that was recorded for its problem, over the mean of that problem's correct kernels.

A step is answered by a recorded one, drawn among those of its kind that started likewise: from
nothing, from a kernel that failed, or from a gap among the nearest third of theirs. The step fails
as the drawn one did, or its kernel has the drawn one's gap. A small step starts from the nearest
correct kernel on its path, a large one from the best that it is shown (in the recording: the best
on its path). Nothing goes beyond the best that was recorded for the problem, since nobody knows
what lies there.

Each seed draws anew, with replacement, the runs that steps are drawn from (steps, if there is one
run only), so that what is uncertain about the fit is in the spread over seeds; a bootstrap of
clusters (Davison and Hinkley 1997, Bootstrap Methods and their Application, 3.8). After `FITS`
seeds the same fits come again, with other luck: seeds that are equal modulo `FITS` tell what is
luck of the search and what of the fit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from adaexplore.core import ROOT_ID, BadInputError, Cell, Status, StepKind
from adaexplore_lab.simulate.landscape import Look, SimulatedKernel
from adaexplore_lab.simulate.recorded import RecordedRun, RecordedStep

FITS = 100

_NEAREST = 1 / 3
_ENOUGH = 10
"""Steps to draw from; where fewer started likewise, others of the kind are drawn from, too."""

_COMPILER = "compiler"
"""Its steps are what a model starts from, and no outcomes, unless a run has no others."""

_LEVEL = 1e-9
"""A problem whose kernels are no further apart, in `ln`, has no unit of its own."""

_DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class _Scale:
    """A problem's: `ln` of the best speedup, and the mean distance of correct kernels from it."""

    best: float
    unit: float

    def gap(self, step: RecordedStep) -> float:
        return (self.best - math.log(step.speedup)) / self.unit

    def speedup(self, gap: float) -> float:
        return math.exp(self.best - gap * self.unit)


@dataclass(frozen=True, slots=True)
class Transition:
    """Start and end of a recorded step; a gap is None where no kernel is correct."""

    kind: StepKind
    failed: bool
    start: float | None
    status: Status
    gap: float | None
    cell: Cell


class Fitted:
    """The landscape of one problem; see the module. `optimum` is the best that was recorded."""

    about = "fitted to recorded runs"

    def __init__(
        self,
        name: str,
        scale: _Scale,
        over_eager: float,
        noises: Sequence[float],
        clusters: Sequence[Sequence[Transition]],
    ) -> None:
        self.name = name
        self.scale = scale
        self.over_eager = over_eager
        self.noises = noises
        self.clusters = clusters

    def world(self, seed: int) -> FittedWorld:
        """The problem with the fit of that number; every problem has the same."""
        rng = random.Random(f"fit/{seed % FITS}")
        while True:
            drawn = rng.choices(self.clusters, k=len(self.clusters))
            transitions = [each for cluster in drawn for each in cluster]
            if {each.kind for each in transitions} >= {"large", "small"}:
                return FittedWorld(self, transitions)


class FittedWorld:
    """A problem with one fit."""

    def __init__(self, landscape: Fitted, transitions: Sequence[Transition]) -> None:
        self._landscape = landscape
        self._transitions = transitions
        self._drawn_from: dict[tuple[StepKind, bool, float | None], Sequence[Transition]] = {}

    @property
    def optimum(self) -> float:
        """The best that was recorded."""
        return self._landscape.scale.speedup(0.0)

    def grow(
        self,
        parent: SimulatedKernel | None,
        step_kind: StepKind,
        shown: Sequence[SimulatedKernel],
        rng: random.Random,
    ) -> SimulatedKernel:
        """See `World.grow`; a kernel's state is its gap, or that of the nearest on its path."""
        if step_kind == "large":
            start = min((kernel.state for kernel in shown if kernel.speedup > 0), default=None)
            failed = False
        else:
            start = parent.state if parent else None
            failed = parent is not None and parent.status != "passed"
        drawn = rng.choice(self._alike(step_kind, failed, start))
        look = Look(drawn.cell, tuple(rng.gauss(0.0, 1.0) for _ in range(_DIMENSIONS)))
        if drawn.gap is None:
            return SimulatedKernel(
                drawn.status, 0.0, 0.0, look, None if step_kind == "large" else start
            )
        speedup = self._landscape.scale.speedup(drawn.gap)
        eager = self._landscape.over_eager
        return self.measure(
            SimulatedKernel("passed", speedup, 0.0, look, drawn.gap, 0.0, eager), rng
        )

    def measure(self, kernel: SimulatedKernel, rng: random.Random) -> SimulatedKernel:
        """See `World.measure`; the noise is that of any recorded measurement."""
        noise = rng.choice(self._landscape.noises)
        measured = kernel.speedup * math.exp(rng.gauss(0.0, noise))
        return replace(kernel, measured=measured, deviation=noise)

    def _alike(self, kind: StepKind, failed: bool, start: float | None) -> Sequence[Transition]:
        """The transitions that a step is drawn from."""
        key = (kind, failed, start)
        if key not in self._drawn_from:
            self._drawn_from[key] = self._find_alike(*key)
        return self._drawn_from[key]

    def _find_alike(
        self, kind: StepKind, failed: bool, start: float | None
    ) -> Sequence[Transition]:
        of_kind = [each for each in self._transitions if each.kind == kind]
        placed = [each for each in of_kind if (each.start is None) == (start is None)]
        alike = [each for each in placed if each.failed == failed]
        enough = next((some for some in (alike, placed) if len(some) >= _ENOUGH), of_kind)
        if start is None:
            return enough
        near = sorted(enough, key=lambda each: _apart(each.start, start))
        return near[: max(_ENOUGH, math.ceil(_NEAREST * len(near)))]


def fitted_landscapes(runs: Sequence[RecordedRun]) -> list[Fitted]:
    """A landscape for each problem of the runs, in their order.

    Raises `BadInputError` if no kernel of a problem is correct, or there are no steps of one kind.
    """
    scales = {problem: _scale(problem, runs) for problem in dict.fromkeys(r.problem for r in runs)}
    clusters = [list(_transitions(run, scales[run.problem])) for run in runs]
    transitions = [each for cluster in clusters for each in cluster]
    for kind in ("large", "small"):
        if not any(each.kind == kind for each in transitions):
            names = ", ".join(run.name for run in runs)
            raise BadInputError(f"{names}: there are no {kind} steps to fit to")
    if len(clusters) == 1:
        clusters = [[each] for each in transitions]
    correct = [step for run in runs for step in run.steps if step.speedup > 0]
    noises = [step.noise for step in correct if step.noise is not None] or [0.0]
    return [
        Fitted(problem, scale, _over_eager(problem, runs), noises, clusters)
        for problem, scale in scales.items()
    ]


def _scale(problem: str, runs: Sequence[RecordedRun]) -> _Scale:
    mine = [run for run in runs if run.problem == problem]
    best = max((step.speedup for run in mine for step in run.steps), default=0.0)
    if not best:
        raise BadInputError(f"{problem}: no kernel was correct, so there is nothing to fit")
    logs = [math.log(step.speedup) for run in mine for step in _outcomes(run) if step.speedup > 0]
    unit = math.log(best) - fmean(logs) if logs else 0.0
    return _Scale(math.log(best), unit if unit > _LEVEL else 1.0)


def _over_eager(problem: str, runs: Sequence[RecordedRun]) -> float:
    """Return the ratio of the speedup over eager to the like-for-like speedup."""
    return median(
        step.speedup_eager / step.speedup
        for run in runs
        for step in run.steps
        if run.problem == problem and step.speedup > 0
    )


def _outcomes(run: RecordedRun) -> Sequence[RecordedStep]:
    """The steps that show what comes of one."""
    own = [step for step in run.steps if step.origin != _COMPILER]
    return own or run.steps


def _transitions(run: RecordedRun, scale: _Scale) -> Iterator[Transition]:
    by_id = {step.id: step for step in run.steps}
    for step in _outcomes(run):
        path, at = [], step.parent_id
        while at != ROOT_ID and at in by_id:
            path.append(by_id[at])
            at = by_id[at].parent_id
        gaps = [scale.gap(above) for above in path if above.speedup > 0]
        large = step.step_kind == "large"
        yield Transition(
            kind=step.step_kind,
            failed=not large and bool(path) and path[0].status != "passed",
            start=(min(gaps) if large else gaps[0]) if gaps else None,
            status=step.status,
            gap=scale.gap(step) if step.speedup > 0 else None,
            cell=step.cell,
        )


def _apart(one: float | None, other: float) -> float:
    return math.inf if one is None else abs(one - other)
