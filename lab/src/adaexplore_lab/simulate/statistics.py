"""Results of contenders, with intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from adaexplore_lab.simulate.runner import Outcome

CHECKPOINTS = (10, 25, 50, 100)
"""Steps after which searches are compared."""

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class ContenderResult:
    """Result of a contender at a step: a geometric mean over seeds, with 95 % interval.

    `landscape` is "all" for the mean over them. `ratio` is over the first contender's with its
    interval, seed by seed on the same worlds; `share` the mean of `ln` of what was found over `ln`
    of the optimum.
    """

    contender: str
    landscape: str
    step: int
    speedup: float
    interval: tuple[float, float]
    share: float
    ratio: float
    ratio_interval: tuple[float, float]


def checkpoints(steps: int) -> list[int]:
    """Return the checkpoints within `steps`, and the last step."""
    return sorted({*(at for at in CHECKPOINTS if at < steps), steps})


def standings(outcomes: Sequence[Outcome]) -> list[ContenderResult]:
    """Every contender at every checkpoint, on every landscape and on all of them."""
    steps = checkpoints(len(outcomes[0].curves[0]))
    contenders = list(dict.fromkeys(outcome.contender for outcome in outcomes))
    landscapes = list(dict.fromkeys(outcome.landscape for outcome in outcomes))
    by_pair = {(outcome.contender, outcome.landscape): outcome for outcome in outcomes}
    found = []
    for place in (*landscapes, "all"):
        members = landscapes if place == "all" else [place]
        for step in steps:
            first: list[float] = []
            for contender in contenders:
                chosen = [by_pair[contender, member] for member in members]
                logs = _logs(chosen, step)
                first = first or logs
                ratios = [a - b for a, b in zip(logs, first, strict=True)]
                found.append(
                    ContenderResult(
                        contender,
                        place,
                        step,
                        math.exp(fmean(logs)),
                        _interval(logs),
                        _share(chosen, step),
                        math.exp(fmean(ratios)),
                        _interval(ratios),
                    )
                )
    return found


def _logs(outcomes: Sequence[Outcome], step: int) -> list[float]:
    """For each seed, the mean over landscapes of `ln` of what was found."""
    seeds = range(len(outcomes[0].curves))
    return [fmean(math.log(o.curves[seed][step - 1]) for o in outcomes) for seed in seeds]


def _share(outcomes: Sequence[Outcome], step: int) -> float:
    return fmean(
        math.log(curve[step - 1]) / math.log(optimum)
        for outcome in outcomes
        for curve, optimum in zip(outcome.curves, outcome.optima, strict=True)
        if optimum > 1
    )


def _interval(logs: Sequence[float]) -> tuple[float, float]:
    """95 % percentile bootstrap of the geometric mean (Efron 1979), from a fixed seed."""
    rng, count = random.Random(0), len(logs)
    means = sorted(fmean(rng.choices(logs, k=count)) for _ in range(_RESAMPLES))
    low, high = means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]
    return (math.exp(low), math.exp(high))
