"""How much faster a problem can still become, and when to stop trying.

Headroom is ln of the best time over the roofline's floor (see `evaluate.roofline`). That searches
near the speed of light had better end, and that budget goes further elsewhere, is the finding of
arXiv 2603.29010. To end where a curve has been flat for so many steps is early stopping with
patience (Prechelt 1998).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from adaexplore.core.config import Settings
from adaexplore.core.evaluation import Passed, Timing
from adaexplore.core.node import Node
from adaexplore.core.units import share as percent
from adaexplore.search.ensemble import gains

_DISPROVED = 1.1
"""A time so much below the floor shows that it is none: less work does, or the floor is noise."""


def best_measured(nodes: Sequence[Node]) -> tuple[Node, Timing] | None:
    """The fastest correct kernel and its times, None while nothing was measured."""
    measured = [
        (node, node.evaluation.measured)
        for node in nodes
        if isinstance(node.evaluation, Passed) and node.evaluation.measured
    ]
    return max(measured, key=lambda pair: pair[1].speedup, default=None)


def headroom(nodes: Sequence[Node], facts: Mapping[str, Any]) -> float | None:
    """ln of the time to beat over the least there can be.

    The time is that of the best kernel, or of the better baseline while none is faster. None where
    the floor is not known; `facts` are those of `Evaluator.prepare`.
    """
    reached = roofline_share(nodes, facts)
    return None if reached is None else max(-math.log(reached), 0.0)


def roofline_share(nodes: Sequence[Node], facts: Mapping[str, Any]) -> float | None:
    """The roofline's floor over the time that headroom is counted from.

    None if the floor is not known, or something runs clearly below it.
    """
    floor_us = (facts.get("roofline") or {}).get("floor_us")
    best = best_measured(nodes)
    times_us = [*facts.get("baselines_us", {}).values(), *([best[1].time_us] if best else [])]
    reached = floor_us / min(times_us) if floor_us and times_us else None
    return reached if reached is None or reached <= _DISPROVED else None


def stop_reason(nodes: Sequence[Node], facts: Mapping[str, Any], settings: Settings) -> str | None:
    """Why a search shall make no further step, None if it shall.

    Where `settings.stop_near` is set, because there is a correct kernel, and it or a baseline
    reaches that share of the roofline; where `settings.stop_flat` is, because so many steps have
    together raised the best speedup by less than `settings.stop_flat_gain`. Steps that the
    machinery failed do not count.
    """
    near = settings.stop_near and best_measured(nodes)
    reached = roofline_share(nodes, facts) if near else None
    if reached is not None and reached >= settings.stop_near:
        return f"near the roofline: {percent(reached)} of it reached"
    if not settings.stop_flat:
        return None
    judged = [node for node in nodes if node.evaluation.status != "infra_error"]
    if is_flat(gains(judged), settings):
        least = percent(settings.stop_flat_gain)
        return f"flat: the last {settings.stop_flat} steps gained less than {least}"
    return None


def is_flat(found: Sequence[float], settings: Settings) -> bool:
    """Whether the last `settings.stop_flat` of these gains, in ln, come to next to nothing."""
    patience = settings.stop_flat
    if not 0 < patience <= len(found):
        return False
    return math.fsum(found[-patience:]) < math.log1p(settings.stop_flat_gain)
