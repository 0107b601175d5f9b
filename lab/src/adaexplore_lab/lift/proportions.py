"""Shares of tries that came out right, how far they are certain, and whether two of them differ.

Tries at one task are alike, so that many at few tasks tell less than as many tasks would. Tasks are
given as what came of each: a pair of how many tries were right and how many there were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import comb
from statistics import NormalDist, fmean, pvariance

Counts = tuple[int, int]
"""Right tries at a task, and all of them: at least one."""

_Z = NormalDist().inv_cdf(0.975)


def share_of(tasks: Sequence[Counts]) -> float:
    """Right tries among all; `ValueError` for none."""
    if not tasks:
        raise ValueError("no tasks")
    return sum(right for right, _ in tasks) / sum(tries for _, tries in tasks)


def interval(tasks: Sequence[Counts]) -> tuple[float, float]:
    """The 95 % interval of a share: Wilson's, for as many tries as these are worth."""
    return wilson(share_of(tasks), effective_tries(tasks))


def wilson(share: float, tries: float) -> tuple[float, float]:
    """The 95 % interval of a share by the score test.

    Wilson 1927, Probable Inference, the Law of Succession, and Statistical Inference (JASA 22).
    """
    middle = share + _Z**2 / (2 * tries)
    reach = _Z * math.sqrt(share * (1 - share) / tries + _Z**2 / (4 * tries**2))
    scale = 1 + _Z**2 / tries
    low, high = (middle - reach) / scale, (middle + reach) / scale
    # At the ends the formula gives the end itself, up to rounding.
    return (0.0 if share == 0 else max(low, 0.0), 1.0 if share == 1 else min(high, 1.0))


def effective_tries(tasks: Sequence[Counts]) -> float:
    """Return the effective number of independent tries, given that tries at one task are alike.

    All tries over the design effect of Rao and Scott 1992 (A Simple Method for the Analysis of
    Clustered Binary Data, Biometrics 48): the variance of the share as tasks differ, over that of
    independent tries. Never less than the tasks nor more than the tries; where all came out the
    same, as many as tasks, since then nothing tells how alike the tries at one are.
    """
    count, tries = len(tasks), sum(n for _, n in tasks)
    share = share_of(tasks)
    if count == 1 or share in (0.0, 1.0):
        return float(count)
    residues = sum((right - n * share) ** 2 for right, n in tasks)
    variance = count / (count - 1) * residues / tries**2
    if variance == 0:
        return float(tries)
    return min(max(share * (1 - share) / variance, float(count)), float(tries))


def paired_interval(first: Sequence[Counts], second: Sequence[Counts]) -> tuple[float, float]:
    """The 95 % interval of the share of `first` minus that of `second`, at the same tasks.

    Both intervals put together by method 10 of Newcombe 1998 (Improved Confidence Intervals for the
    Difference between Binomial Proportions Based on Paired Data, Statistics in Medicine 17), with
    the correlation of the tasks' shares; for one try at each task it is that method as published.
    """
    one, other = share_of(first), share_of(second)
    (low1, high1), (low2, high2) = interval(first), interval(second)
    phi = _correlation(first, second)

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a * a - 2 * phi * a * b + b * b, 0.0))

    difference = one - other
    return (
        max(difference - reach(one - low1, high2 - other), -1.0),
        min(difference + reach(high1 - one, other - low2), 1.0),
    )


def _correlation(first: Sequence[Counts], second: Sequence[Counts]) -> float:
    """Correlation of the tasks' shares, a positive one with Newcombe's continuity correction."""
    ones = [right / tries for right, tries in first]
    others = [right / tries for right, tries in second]
    spread = math.sqrt(pvariance(ones) * pvariance(others))
    if spread == 0:
        return 0.0
    mean, other_mean = fmean(ones), fmean(others)
    covariance = fmean((a - mean) * (b - other_mean) for a, b in zip(ones, others, strict=True))
    if covariance > 0:
        covariance = max(covariance - 1 / (2 * len(ones)), 0.0)
    return covariance / spread


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p-value of the exact sign test.

    Of tasks where two arms differ. With one try at each it is the exact form of the test of
    McNemar 1947 (Note on the Sampling Error of the Difference between Correlated Proportions,
    Psychometrika 12).
    """
    count = better + worse
    tail = sum(comb(count, k) for k in range(min(better, worse) + 1))
    return min(2 * tail / float(2**count), 1.0)
