"""Which of several proposers is asked next: the one whose steps pay off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from adaexplore.core.evaluation import Passed
from adaexplore.core.node import Node

_EXPLORE = 0.5
_PRIOR_STEPS = 2.0
"""A proposer is credited with so many steps of the average before it has made any."""


def gains(nodes: Sequence[Node]) -> list[float]:
    """What each step, in order, added to the best speedup so far: ln of the ratio, 0 for none.

    The first correct kernel is compared with the baseline.
    """
    best, found = 1.0, []
    for node in nodes:
        evaluation = node.evaluation
        timing = evaluation.measured if isinstance(evaluation, Passed) else None
        speedup = timing.speedup if timing else 0.0
        found.append(max(math.log(speedup / best), 0.0) if speedup > 0 else 0.0)
        best = max(best, speedup)
    return found


def choose_proposer(
    names: Sequence[str],
    nodes: Sequence[Node],
    spent_usd: Mapping[str, float] | None = None,
    under_way: Sequence[str] = (),
) -> str:
    """The proposer with the highest upper confidence bound on its gain (UCB1, Auer et al. 2002).

    Gain per step, or per dollar where `spent_usd` says what the steps of every proposer cost. Each
    is asked once first, in order. Those that are being asked (`under_way`, one name a step) count
    as if nothing came of it, so that several steps at once go to several proposers. The
    rates are in units of the best one's, since nobody knows beforehand how large gains are.
    """
    made: dict[str, list[float]] = {name: [] for name in names}
    for node, gain in zip(nodes, gains(nodes), strict=True):
        if node.proposal.origin in made:
            made[node.proposal.origin].append(gain)
    costs = _costs(made, spent_usd)
    for name in under_way:
        if name in made:
            made[name].append(0.0)
    untried = [name for name in names if not made[name]]
    if untried:
        return untried[0]
    every = [gain for of_one in made.values() for gain in of_one]
    mean = sum(every) / len(every)
    rates = {
        name: (sum(of_one) + _PRIOR_STEPS * mean) / (costs[name] * (len(of_one) + _PRIOR_STEPS))
        for name, of_one in made.items()
    }
    top = max(rates.values()) or 1.0

    def bound(name: str) -> float:
        return rates[name] / top + _EXPLORE * math.sqrt(math.log(len(every)) / len(made[name]))

    return max(names, key=bound)


def _costs(
    made: Mapping[str, Sequence[float]], spent_usd: Mapping[str, float] | None
) -> dict[str, float]:
    """What a step of each proposer costs, 1 for each where that is not known or nothing."""
    known = spent_usd is not None and all(made[n] and spent_usd.get(n, 0.0) > 0 for n in made)
    if spent_usd is None or not known:
        return dict.fromkeys(made, 1.0)
    return {name: spent_usd[name] / len(made[name]) for name in made}
