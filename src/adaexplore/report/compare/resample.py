"""Intervals of geometric means over problems, and over seeds within them."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
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
    resamples = _resamples(tuple((len(unit.runs), len(unit.over)) for unit in units))
    cut = int(_tail(size) * _RESAMPLES)
    found: list[Interval | None] = []
    for column in columns:
        means = sorted(sum(map(mul, weights, column)) for weights in resamples)
        found.append((math.exp(means[cut]), math.exp(means[-1 - cut])))
    return found


@lru_cache(maxsize=8)
def _resamples(layout: tuple[tuple[int, int], ...]) -> list[array[float]]:
    """What every run counts in each resample of units with so many runs, and so many others."""
    rng = random.Random(0)
    starts = list(accumulate((own + others for own, others in layout), initial=0))
    resamples = []
    for _ in range(_RESAMPLES):
        weights = array("d", bytes(8 * starts[-1]))
        for i in rng.choices(range(len(layout)), k=len(layout)):
            own, others = layout[i]
            for first, count, sign in ((starts[i], own, 1), (starts[i] + own, others, -1)):
                for _ in range(count):
                    weights[first + int(rng.random() * count)] += sign / (count * len(layout))
        resamples.append(weights)
    return resamples


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
