"""Averages of the speedups of several problems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median

CAP = 10.0
FAST_P = (1.0, 1.5, 2.0)
NO_KERNEL_SPEEDUP = 0.1
"""Value of a problem without a correct kernel in geometric means."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Averages of the speedups of several problems.

    `median`, `mean`, `mean_capped` (at 10x) and `geometric_mean` are over the problems with a
    correct kernel, None without one. `fast_p` is KernelBench's: the share of all problems that have
    a correct kernel with a speedup above p. The `published` averages are those of arXiv 2604.16625:
    capped, over all problems; a problem without a correct kernel counts as 0, or as 0.1 in the
    geometric mean.
    """

    median: float | None
    mean: float | None
    mean_capped: float | None
    geometric_mean: float | None
    fast_p: Mapping[float, float]
    published_mean: float
    published_geometric_mean: float


def averages(speedups: Sequence[float], problems: int, fast: Sequence[float] = FAST_P) -> Averages:
    """Return the averages of `problems` problems; those with a correct kernel have `speedups`.

    `fast` has the values of p. Raises `ValueError` for more speedups than problems, or for no
    problems.
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
        fast_p={p: sum(speedup > p for speedup in speedups) / problems for p in fast},
        published_mean=math.fsum(capped) / problems,
        published_geometric_mean=geometric_mean([*capped, *[NO_KERNEL_SPEEDUP] * without]),
    )
