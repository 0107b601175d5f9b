"""Timings of several workloads as one.

The combined figures are geometric means over the workloads, so that a ratio of combined times is
the combined ratio (Fleming and Wallace 1986). A mean of logarithms is a linear combination of
estimates from independent measurements; its interval follows from the single intervals by MOVER,
the method of variance estimates recovery (Zou, Huang and Zhang 2009, for linear functions of
parameters): the distances to the limits add up in quadrature. It needs no normal distribution.
What a candidate could hide, it hides on every workload: `Timing.allowance` is no noise, and its
mean is a plain one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaexplore.core.verdict.evaluation import Conditions, Paired, Roofline, Timing
from adaexplore.core.verdict.facts import ReferenceRoofline

Interval = tuple[float, float]


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean; 0 if a value is 0."""
    if min(values) <= 0.0:
        return 0.0
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def mean_interval(values: Sequence[float], intervals: Sequence[Interval]) -> Interval:
    """Return the interval of the geometric mean of independent estimates with these intervals."""
    mean, count = geometric_mean(values), len(values)
    pairs = list(zip(values, intervals, strict=True))
    below = math.hypot(*(math.log(value / low) for value, (low, _) in pairs)) / count
    above = math.hypot(*(math.log(high / value) for value, (_, high) in pairs)) / count
    return mean * math.exp(-below), mean * math.exp(above)


def combined(timings: Sequence[Timing]) -> Timing:
    """Return the timing of several workloads; that of one workload is its own."""
    if len(timings) == 1:
        return timings[0]
    names = [
        name for name in timings[0].baselines_us if all(name in t.baselines_us for t in timings)
    ]
    strongest = {t.strongest for t in timings}
    over_compile = [t.speedup_compile for t in timings if t.speedup_compile is not None]
    times, speedups = [t.time_us for t in timings], [t.speedup for t in timings]
    low, high = mean_interval(speedups, [t.noise_ci for t in timings])
    below, above = (geometric_mean([t.allowance[end] for t in timings]) for end in (0, 1))
    return Timing(
        time_us=geometric_mean(times),
        time_ci_us=mean_interval(times, [t.time_ci_us for t in timings]),
        baselines_us={n: geometric_mean([t.baselines_us[n] for t in timings]) for n in names},
        speedup=geometric_mean(speedups),
        speedup_ci=(low * below, high * above),
        speedup_eager=geometric_mean([t.speedup_eager for t in timings]),
        samples=sum(t.samples for t in timings),
        parent=_combined_parents([t.parent for t in timings]),
        conditions=_worst([t.conditions for t in timings if t.conditions]),
        speedup_compile=geometric_mean(over_compile) if len(over_compile) == len(timings) else None,
        waited=max(t.waited for t in timings),
        allowance=(below, above),
        strongest=strongest.pop() if len(strongest) == 1 else "",
    )


def combined_roofline(rooflines: Sequence[Roofline]) -> Roofline:
    """Return geometric means over several workloads; `bound_by` is that of the highest floor."""
    if len(rooflines) == 1:
        return rooflines[0]
    return Roofline(
        floor_us=geometric_mean([r.floor_us for r in rooflines]),
        bound_by=max(rooflines, key=lambda r: r.floor_us).bound_by,
        share=geometric_mean([r.share for r in rooflines]),
        bytes_per_s=geometric_mean([r.bytes_per_s for r in rooflines]),
        flops_per_s=geometric_mean([r.flops_per_s for r in rooflines]),
    )


def combined_roofline_facts(rooflines: Sequence[ReferenceRoofline]) -> ReferenceRoofline:
    """Return geometric means over several workloads; `bound_by` is that of the highest floor."""
    highest = max(rooflines, key=lambda r: r.floor_us)
    if len(rooflines) == 1:
        return highest
    return ReferenceRoofline(
        bytes=round(geometric_mean([r.bytes for r in rooflines])),
        flops=round(geometric_mean([r.flops for r in rooflines])),
        unavoidable_bytes=round(geometric_mean([r.unavoidable_bytes for r in rooflines])),
        floor_us=geometric_mean([r.floor_us for r in rooflines]),
        bound_by=highest.bound_by,
        bytes_per_s=geometric_mean([r.bytes_per_s for r in rooflines]),
        flops_per_s=highest.flops_per_s,
        overhead_us=geometric_mean([r.overhead_us for r in rooflines]),
    )


def _combined_parents(parents: Sequence[Paired | None]) -> Paired | None:
    known = [parent for parent in parents if parent]
    if len(known) < len(parents):
        return None
    speedups = [parent.speedup for parent in known]
    return Paired(
        geometric_mean([parent.time_us for parent in known]),
        geometric_mean(speedups),
        mean_interval(speedups, [parent.speedup_ci for parent in known]),
    )


def _worst(conditions: Sequence[Conditions]) -> Conditions | None:
    if not conditions:
        return None
    clocks = [c.clock_mhz for c in conditions if c.clock_mhz is not None]
    heats = [c.temperature_c for c in conditions if c.temperature_c is not None]
    return Conditions(
        load=max(c.load for c in conditions),
        clock_mhz=min(clocks, default=None),
        temperature_c=max(heats, default=None),
        throttled=tuple(dict.fromkeys(reason for c in conditions for reason in c.throttled)),
    )
