"""Medians and bootstrap intervals, without numpy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median

RESAMPLES = 2000


def bootstrap_median(samples: Sequence[float], *, level: float = 0.95) -> tuple[float, float]:
    """The percentile bootstrap interval of the median (Efron 1979), with a fixed seed.

    One sample gives an interval of no width. Raises `ValueError` for none.
    """
    if not samples:
        raise ValueError("no samples")
    rng = random.Random(0)
    count = len(samples)
    medians = sorted(median(rng.choices(samples, k=count)) for _ in range(RESAMPLES))
    tail = (1.0 - level) / 2.0
    return medians[int(tail * RESAMPLES)], medians[min(RESAMPLES - 1, int((1 - tail) * RESAMPLES))]
