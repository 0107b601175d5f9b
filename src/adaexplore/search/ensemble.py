"""Bandit over the proposers of a search: the proposer that makes the next step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from adaexplore.core.node import Node

_EXPLORATION = 0.5
_PRIOR_STEPS = 2.0
"""Average steps added to the record of every proposer (a prior)."""


def gains(nodes: Sequence[Node]) -> list[float]:
    """Return for every step ln of the factor by which it raised the best speedup, 0 for none.

    The first correct kernel is compared with the baseline.
    """
    best, found = 1.0, []
    for node in nodes:
        evaluation = node.evaluation
        timing = evaluation.measured
        speedup = timing.at_least if timing else 0.0
        found.append(max(math.log(speedup / best), 0.0) if speedup > 0 else 0.0)
        best = max(best, speedup)
    return found


def choose_proposer(
    names: Sequence[str],
    nodes: Sequence[Node],
    spent_usd: Mapping[str, float] | None = None,
    under_way: Sequence[str] = (),
) -> str:
    """Return the proposer with the highest upper confidence bound on its gain.

    UCB1 (Auer et al. 2002) over the gain per step, or per dollar where `spent_usd` gives the cost
    of the steps of every proposer. Each proposer is asked once first, in order. `under_way` names
    the proposer of every step in flight; such a step counts as one without a gain, so that several
    steps at once go to several proposers. Rates are in units of the best rate, because the scale of
    gains is unknown beforehand.
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
    every = [gain for own_gains in made.values() for gain in own_gains]
    prior = _PRIOR_STEPS * sum(every) / len(every)
    rates = {
        name: (sum(own_gains) + prior) / (costs[name] * (len(own_gains) + _PRIOR_STEPS))
        for name, own_gains in made.items()
    }
    best = max(rates.values()) or 1.0

    def bound(name: str) -> float:
        return rates[name] / best + _EXPLORATION * math.sqrt(math.log(len(every)) / len(made[name]))

    return max(names, key=bound)


def _costs(
    made: Mapping[str, Sequence[float]], spent_usd: Mapping[str, float] | None
) -> dict[str, float]:
    """Return the cost of a step of each proposer; 1 for each where a cost is unknown or zero."""
    known = spent_usd is not None and all(made[n] and spent_usd.get(n, 0.0) > 0 for n in made)
    if spent_usd is None or not known:
        return dict.fromkeys(made, 1.0)
    return {name: spent_usd[name] / len(made[name]) for name in made}
