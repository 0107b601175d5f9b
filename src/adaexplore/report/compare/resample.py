"""Intervals of geometric means over problems, and over seeds within a problem."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, combinations, product
from operator import mul
from statistics import NormalDist, fmean

_RESAMPLES = 2000
_MOST_FLIPPED = 14
_DRAWN = 10_000
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
    found: dict[tuple[float, ...], Interval] = {}
    for column in set(columns):  # the best so far is the same at most places of a curve
        means = sorted(sum(map(mul, weights, column)) for weights in resamples)
        found[column] = math.exp(means[cut]), math.exp(means[-1 - cut])
    return [found[column] for column in columns]


def permutation_p(units: Sequence[PairedRuns]) -> float | None:
    """Return the two-sided p-value of no difference at the first amount; None for one sample.

    The statistic is the mean over problems of the difference. The arms are swapped within each
    problem, all its runs together (a sign-flip test, exact up to 14 problems); those of a single
    problem exchange their runs. The observed assignment counts among the drawn ones, so that the
    test is valid (Phipson and Smyth 2010).
    """
    if sample_size(units) < 2:
        return None
    rng = random.Random(0)
    if len(units) == 1:
        differences = _exchanged(units[0], rng)
    else:
        differences = _flipped([unit.means()[0] for unit in units], rng)
    rounding = 1e-9 * max(map(abs, differences))
    observed = abs(fmean(unit.means()[0] for unit in units)) - rounding
    return sum(abs(one) >= observed for one in differences) / len(differences)


def _flipped(values: Sequence[float], rng: random.Random) -> list[float]:
    """Return the means of the values under all signs, or under random ones after the observed."""
    if len(values) <= _MOST_FLIPPED:
        signs: Iterable[Sequence[int]] = product((1, -1), repeat=len(values))
    else:
        drawn = (rng.choices((1, -1), k=len(values)) for _ in range(_DRAWN))
        signs = chain([[1] * len(values)], drawn)
    return [sum(map(mul, values, each)) / len(values) for each in signs]


def _exchanged(unit: PairedRuns, rng: random.Random) -> list[float]:
    """Return the differences of a problem's means with its runs assigned to the arms anew."""
    values = [run[0] for run in (*unit.runs, *unit.over)]
    own, total = len(unit.runs), sum(run[0] for run in (*unit.runs, *unit.over))
    if math.comb(len(values), own) <= _DRAWN:
        sums = [sum(chosen) for chosen in combinations(values, own)]
    else:
        drawn = [sum(rng.sample(values, own)) for _ in range(_DRAWN)]
        sums = [sum(values[:own]), *drawn]
    return [one / own - (total - one) / (len(values) - own) for one in sums]


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
