"""Speedups of several problems as one number each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median

CAP = 10.0
FAST_P = (1.0, 1.5, 2.0)
NO_KERNEL_SPEEDUP = 0.1
"""What a problem without a correct kernel counts in the published geometric mean."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Speedups of several problems as one number each.

    `median`, `mean`, `mean_capped` (at 10x) and `geometric_mean` are over those with a correct
    kernel, None where there is none. `fast_p` is KernelBench's: the share of all problems with a
    correct kernel of a speedup above p. The `published` ones are those of arXiv 2604.16625: capped,
    over all problems, one without a correct kernel counting as 0, or 0.1 in the geometric mean.
    """

    median: float | None
    mean: float | None
    mean_capped: float | None
    geometric_mean: float | None
    fast_p: Mapping[float, float]
    published_mean: float
    published_geometric_mean: float


def averages(speedups: Sequence[float], problems: int) -> Averages:
    """The averages of so many problems, of which those with a correct kernel have these speedups.

    Raises `ValueError` for more speedups than problems, or none of either.
    """
    if not 0 < problems >= len(speedups):
        raise ValueError(f"{len(speedups)} speedups of {problems} problems")
    capped = [min(speedup, CAP) for speedup in speedups]
    without = problems - len(speedups)
    return Averages(
        median=median(speedups) if speedups else None,
        mean=fmean(speedups) if speedups else None,
        mean_capped=fmean(capped) if speedups else None,
        geometric_mean=geometric_mean(speedups) if speedups else None,
        fast_p={p: sum(speedup > p for speedup in speedups) / problems for p in FAST_P},
        published_mean=math.fsum(capped) / problems,
        published_geometric_mean=geometric_mean([*capped, *[NO_KERNEL_SPEEDUP] * without]),
    )
