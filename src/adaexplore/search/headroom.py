"""Headroom of a problem, and the stopping rules of a search.

Headroom is ln of the best time over the roofline's floor (see `evaluate.timing.roofline`). Stopping
near the roofline, so that the budget goes to problems with more headroom, follows arXiv 2603.29010.
Stopping after a number of flat steps is early stopping with patience (Prechelt 1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaexplore.core.node import START, Node
from adaexplore.core.settings.config import Config
from adaexplore.core.text.units import share as percent
from adaexplore.core.verdict.evaluation import Timing
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.search.ensemble import gains

DISPROVED = 1.1
"""Ratio of floor to time above which the floor is no bound: the kernel does less work than the
roofline assumes, or the floor is noise."""


def best_measured(nodes: Sequence[Node]) -> tuple[Node, Timing] | None:
    """Return the fastest correct kernel with its timing, None while nothing was measured."""
    measured = [(n, n.evaluation.measured) for n in nodes if n.evaluation.measured]
    return max(measured, key=lambda pair: pair[1].at_least, default=None)


def headroom(nodes: Sequence[Node], facts: ReferenceFacts) -> float | None:
    """Return ln of the time to beat over the roofline's floor, None where no floor is known.

    The time to beat is that of the best kernel, or of the strongest baseline while no kernel is
    faster. `facts` are those of `Evaluator.prepare`.
    """
    reached = roofline_share(nodes, facts)
    return None if reached is None else max(-math.log(reached), 0.0)


def roofline_share(nodes: Sequence[Node], facts: ReferenceFacts) -> float | None:
    """Return the roofline's floor over the time to beat (see `headroom`).

    None if the floor is unknown, or if some time lies clearly below it.
    """
    floor_us = facts.roofline.floor_us if facts.roofline else None
    best = best_measured(nodes)
    times_us = [*facts.baselines_us.values(), *([best[1].time_us] if best else [])]
    reached = floor_us / min(times_us) if floor_us and times_us else None
    return reached if reached is None or reached <= DISPROVED else None


def stop_reason(nodes: Sequence[Node], facts: ReferenceFacts, settings: Config) -> str | None:
    """Return the reason to make no further step, None if the search goes on.

    With `settings.stop_near`, a search stops once it has a correct kernel and that kernel or a
    baseline reaches this share of the roofline. With `settings.stop_flat`, it stops once this many
    last steps have together raised the best speedup by less than `settings.stop_flat_gain`.
    Infrastructure errors and starting kernels do not count as steps.
    """
    near = settings.stop_near and best_measured(nodes)
    reached = roofline_share(nodes, facts) if near else None
    if reached is not None and reached >= settings.stop_near:
        return f"near the roofline: {percent(reached)} of it reached"
    if not settings.stop_flat:
        return None
    judged = [
        gain
        for node, gain in zip(nodes, gains(nodes), strict=True)
        if node.evaluation.status != "infra_error" and node.proposal.origin != START
    ]
    if is_flat(judged, settings):
        least = percent(settings.stop_flat_gain)
        return f"flat: the last {settings.stop_flat} steps gained less than {least}"
    return None


def is_flat(found: Sequence[float], settings: Config) -> bool:
    """Return true if the last `settings.stop_flat` of these gains, in ln, are negligible in sum."""
    patience = settings.stop_flat
    if not 0 < patience <= len(found):
        return False
    return math.fsum(found[-patience:]) < math.log1p(settings.stop_flat_gain)
