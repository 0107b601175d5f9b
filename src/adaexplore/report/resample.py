"""Intervals of geometric means over problems, and over seeds within them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from statistics import NormalDist, fmean

_RESAMPLES = 2000
_Z = NormalDist().inv_cdf(0.975)

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Unit:
    """A problem: for each of its runs, the `ln` of what was found at every place.

    With runs `over` which to compare, what counts is the difference of the means.
    """

    runs: Sequence[Sequence[float]]
    over: Sequence[Sequence[float]] = ()

    def means(self) -> list[float]:
        """The mean, or the difference of the means, at every place."""
        means = [fmean(place) for place in zip(*self.runs, strict=True)]
        if not self.over:
            return means
        others = [fmean(place) for place in zip(*self.over, strict=True)]
        return [mean - other for mean, other in zip(means, others, strict=True)]


def geometric_means(units: Sequence[Unit]) -> list[float]:
    """The geometric mean over the problems at every place."""
    means = [unit.means() for unit in units]
    return [math.exp(fmean(place)) for place in zip(*means, strict=True)]


def sample_size(units: Sequence[Unit]) -> int:
    """How many independent things an interval rests on: problems, or the seeds of a single one."""
    if len(units) != 1:
        return len(units)
    [unit] = units
    return min(len(side) for side in (unit.runs, unit.over) if side)


def intervals(units: Sequence[Unit]) -> list[Interval | None]:
    """The 95 % interval of the geometric mean at every place; None where there is but one sample.

    A bootstrap in two stages, from a fixed seed: problems are drawn, then runs of each (Davison and
    Hinkley 1997, section 3.8). Percentiles are expanded for small samples, which percentiles of the
    bootstrap are too narrow for (Hesterberg 2015, What Teachers Should Know About the Bootstrap,
    section 3.3).
    """
    places = len(units[0].runs[0]) if units else 0
    size = sample_size(units)
    if size < 2:
        return [None] * places
    runs = [run for unit in units for side in (unit.runs, unit.over) for run in side]
    columns = list(zip(*runs, strict=True))
    rng = random.Random(0)
    drawn = [
        [sum(map(mul, weights, column)) for column in columns]
        for weights in (_weights(units, rng) for _ in range(_RESAMPLES))
    ]
    cut = int(_tail(size) * _RESAMPLES)
    found: list[Interval | None] = []
    for place in zip(*drawn, strict=True):
        ordered = sorted(place)
        found.append((math.exp(ordered[cut]), math.exp(ordered[-1 - cut])))
    return found


def _weights(units: Sequence[Unit], rng: random.Random) -> list[float]:
    """What every run counts in one resample."""
    starts, start = [], 0
    for unit in units:
        starts.append(start)
        start += len(unit.runs) + len(unit.over)
    weights = [0.0] * start
    for i in rng.choices(range(len(units)), k=len(units)):
        at, share = starts[i], 1 / len(units)
        for side, sign in ((units[i].runs, share), (units[i].over, -share)):
            for _ in side:
                weights[at + (int(rng.random() * len(side)))] += sign / len(side)
            at += len(side)
    return weights


def _tail(size: int) -> float:
    """The share of resamples to leave out on either side."""
    return NormalDist().cdf(-math.sqrt(size / (size - 1)) * _student(size - 1))


def _student(degrees: int) -> float:
    """The 97.5 % quantile of Student's t, by Abramowitz and Stegun 26.7.5: for two degrees 3 % too
    small, where tails are left whole anyway."""
    z, n = _Z, degrees
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
