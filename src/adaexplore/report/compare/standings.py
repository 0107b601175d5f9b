"""Results of the arms of a comparison, over the problems that all arms have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from adaexplore.core.verdict.evaluation import Timing
from adaexplore.report.averages import NO_KERNEL_SPEEDUP, averages
from adaexplore.report.compare.arms import SearchArm
from adaexplore.report.compare.comparison import (
    MIN_PROBLEMS,
    ArmCurve,
    ArmEffort,
    ArmStanding,
    Checkpoint,
    Decision,
    FoundSpeedup,
    Pair,
)
from adaexplore.report.compare.resample import (
    Interval,
    PairedRuns,
    geometric_means,
    mean_intervals,
    permutation_p,
    sample_size,
)
from adaexplore.report.compare.traces import AXES, WHOLE, Axis, RunTrace

_SAME = 0.01
"""Largest difference of `ln speedup` that always counts as a tie."""

_PLACES = 100
"""Maximum number of points of a curve."""

_Z = 1.96
"""Standard errors in half a 95 % interval."""

RunsByProblem = Mapping[str, Sequence[Sequence[RunTrace]]]
"""The runs of each arm, by the problem's key."""


def checkpoint(
    arms: Sequence[SearchArm],
    field: RunsByProblem,
    at: float | None,
    best: Callable[[RunTrace], Timing | None],
) -> Checkpoint:
    """Return all arms' results; `best` returns the measurement of a run that counts."""
    timings = [[list(map(best, sides[i])) for sides in field.values()] for i in range(len(arms))]
    found = [[found_by(of_problem) for of_problem in own] for own in timings]
    logs = [[[[_log(t)] for t in of_problem] for of_problem in own] for own in timings]
    standings, pairs = [], []
    for i, arm in enumerate(arms):
        units = [PairedRuns(runs) for runs in logs[i]]
        found_speedups = [one.speedup for one in found[i] if one.correct and one.speedup]
        standings.append(
            ArmStanding(
                arm=arm.name,
                speedup=geometric_means(units)[0],
                interval=mean_intervals(units)[0],
                averages=averages(found_speedups, len(field)),
            )
        )
        if i:
            pairs.append(pair(arm.name, timings[i], arms[0].name, timings[0]))
    return Checkpoint(at, len(field), tuple(standings), tuple(pairs))


def pair(
    arm: str,
    own: Sequence[Sequence[Timing | None]],
    over: str,
    other: Sequence[Sequence[Timing | None]],
) -> Pair:
    """Return an arm over another: the measurements of their runs, of the same problems in order."""
    units = [
        PairedRuns([[_log(t)] for t in ours], [[_log(t)] for t in theirs])
        for ours, theirs in zip(own, other, strict=True)
    ]
    outcomes = Counter(map(_outcome, map(found_by, own), map(found_by, other)))
    interval, samples = mean_intervals(units)[0], sample_size(units)
    return Pair(
        arm=arm,
        over=over,
        ratio=geometric_means(units)[0],
        interval=interval,
        samples=samples,
        wins=outcomes[1],
        ties=outcomes[0],
        losses=outcomes[-1],
        p_value=permutation_p(units),
        decision=_decision(interval, samples),
    )


def _decision(interval: Interval | None, samples: int) -> Decision:
    if interval is None or samples < MIN_PROBLEMS:
        return "too few"
    low, high = interval
    return "faster" if low > 1 else "slower" if high < 1 else "undecided"


def _log(timing: Timing | None) -> float:
    return math.log(timing.claim if timing else NO_KERNEL_SPEEDUP)


def found_by(timings: Sequence[Timing | None]) -> FoundSpeedup:
    """Return the result of several runs, from the best measurement (or None) of each."""
    if not timings:
        return FoundSpeedup(None)
    noises = [math.log(t.speedup_ci[1] / t.speedup_ci[0]) / (2 * _Z) for t in timings if t]
    return FoundSpeedup(
        speedup=math.exp(fmean(map(_log, timings))),
        runs=len(timings),
        correct=sum(timing is not None for timing in timings),
        noise=math.hypot(*noises) / len(timings),
    )


def _outcome(own: FoundSpeedup, other: FoundSpeedup) -> int:
    """Return 1 for a win, -1 for a loss, 0 for a tie."""
    apart = math.log((own.speedup or NO_KERNEL_SPEEDUP) / (other.speedup or NO_KERNEL_SPEEDUP))
    if abs(apart) <= max(_Z * math.hypot(own.noise, other.noise), _SAME):
        return 0
    return 1 if apart > 0 else -1


def effort(arm: str, traces: Sequence[RunTrace], axis: Axis, at: float) -> ArmEffort:
    """Return the means per run of an arm, up to amount `at`."""
    within = [points for trace in traces if (points := trace.within(axis, at))]
    last = [points[-1] for points in within]
    apart = [point.distance for point in last if point.distance is not None]
    return ArmEffort(
        arm=arm,
        runs=len(traces),
        first_tries=sum(trace.points[0].correct for trace in traces),
        correct=_mean([point.correct for points in within for point in points]),
        structures=_mean([point.structures for point in last]),
        distance=fmean(apart) if apart else None,
        used={
            name: _mean([max(p.used[name] for p in points) for points in within]) for name in AXES
        },
        device_s=_mean([max(p.device_s for p in points) for points in within]),
        unknown=tuple(name for name in AXES if any(name in trace.unknown for trace in traces)),
    )


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def curves(
    arms: Sequence[SearchArm], field: RunsByProblem, axis: Axis, until: float
) -> list[ArmCurve]:
    """Return the arms' geometric means over the problems, from the start to `until`."""
    whole = axis in WHOLE
    count = min(_PLACES, int(until)) if whole else _PLACES
    at = [until * (i + 1) / count for i in range(count)]
    at = [float(math.floor(place + 1e-9)) for place in at] if whole else at
    curves = []
    for i, arm in enumerate(arms):
        units = [
            PairedRuns([[_log(trace.best(axis, place)) for place in at] for trace in sides[i]])
            for sides in field.values()
        ]
        curves.append(
            ArmCurve(
                arm.name, tuple(at), tuple(geometric_means(units)), tuple(mean_intervals(units))
            )
        )
    return curves
