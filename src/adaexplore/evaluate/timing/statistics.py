"""Intervals of medians, without numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import comb


def median_interval(samples: Sequence[float], *, level: float = 0.95) -> tuple[float, float]:
    """An interval that holds the median of what the samples come from, whatever its distribution.

    Interpolates between the two pairs of order statistics whose (binomial) coverage encloses
    `level` (Hettmansperger and Sheather 1986). Fewer than six samples cannot reach 0.95: their
    whole range is the interval. Raises `ValueError` for none.
    """
    if not samples:
        raise ValueError("no samples")
    ordered, count = sorted(samples), len(samples)
    # coverage[k]: of the interval that leaves k samples out on either side
    below = accumulate(comb(count, k) / 2**count for k in range((count + 1) // 2))
    coverage = [1.0 - 2.0 * tail for tail in below]
    depth = sum(c >= level for c in coverage)
    if depth == 0:
        return ordered[0], ordered[-1]
    low, high = ordered[depth - 1], ordered[-depth]
    if depth == len(coverage):
        return low, high
    wide, narrow = coverage[depth - 1], coverage[depth]
    share = (wide - level) / (wide - narrow)
    inward = (count - depth) * share / (depth + (count - 2 * depth) * share)
    low += inward * (ordered[depth] - low)
    high += inward * (ordered[-depth - 1] - high)
    return low, high
