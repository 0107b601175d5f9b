"""Intervals of geometric means over problems, and over seeds within a problem."""

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
class PairedRuns:
    """A problem: the `ln` of the speedup of each run at every amount.

    If `over` has runs, the value is the difference of the two means.
    """

    runs: Sequence[Sequence[float]]
    over: Sequence[Sequence[float]] = ()

    def means(self) -> list[float]:
        """Return the mean, or the difference of the means, at every amount."""
        means = [fmean(place) for place in zip(*self.runs, strict=True)]
        if not self.over:
            return means
        others = [fmean(place) for place in zip(*self.over, strict=True)]
        return [mean - other for mean, other in zip(means, others, strict=True)]


def geometric_means(units: Sequence[PairedRuns]) -> list[float]:
    """Return the geometric mean over the problems at every amount."""
    means = [unit.means() for unit in units]
    return [math.exp(fmean(place)) for place in zip(*means, strict=True)]


def sample_size(units: Sequence[PairedRuns]) -> int:
    """Return the number of independent samples: problems, or the seeds of a single problem."""
    if len(units) != 1:
        return len(units)
    [unit] = units
    return min(len(side) for side in (unit.runs, unit.over) if side)


def mean_intervals(units: Sequence[PairedRuns]) -> list[Interval | None]:
    """Return the 95 % interval of the geometric mean at every amount; None for a single sample.

    A bootstrap in two stages with a fixed seed draws problems, then runs of each (Davison and
    Hinkley 1997, section 3.8). Percentiles are expanded for small samples, for which those of the
    bootstrap are too narrow (Hesterberg 2015, What Teachers Should Know About the Bootstrap,
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
    """Return the weight of every run in each resample, for units with these numbers of runs."""
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
    """Return the share of resamples to leave out at either end."""
    return NormalDist().cdf(-math.sqrt(size / (size - 1)) * _student(size - 1))


def _student(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t by Abramowitz and Stegun 26.7.5.

    For two degrees of freedom it is 3 % too small; no resamples are left out there anyway.
    """
    z, n = _Z, degrees
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
