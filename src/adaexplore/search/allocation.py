"""Bandit over the problems of a campaign: the problem that gets the next steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from adaexplore.core.settings.config import Allocation

_DISCOUNT = 0.95
"""Weight of a step relative to the weight of the step after it."""

_EXPLORATION = 0.6
_PRIOR_STEPS = 4.0
"""Average steps added to the record of every problem (a prior)."""

_LEAST_SHARE = 0.65
"""Every problem gets at least this fraction of the mean number of steps: gains may come late."""

_UNKNOWN_HEADROOM = 1.0
"""Headroom of every problem where no headroom is known; any constant gives the same choice."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Progress of one problem's search, as an arm of the bandit.

    `gains` holds, for each step, ln of the factor by which it raised the best speedup. `costs`
    holds the cost of each step, in a unit common to all problems. `headroom` is ln of the factor
    that the roofline leaves to gain, None if unknown. `under_way` counts the steps in flight.
    """

    gains: Sequence[float] = ()
    costs: Sequence[float] = ()
    headroom: float | None = None
    under_way: int = 0

    @property
    def begun(self) -> int:
        """Number of steps that are finished or in flight."""
        return len(self.gains) + self.under_way


def choose_problem(arms: Sequence[Arm], allocation: Allocation, first: int) -> int:
    """Return the index of the problem whose search continues.

    Every problem gets `first` steps, at least one, before any problem gets more, and no problem
    falls far behind the mean. Beyond that, "uniform" chooses the problem with the fewest steps, and
    "headroom" the one with the highest upper confidence bound on the gain of its next step per
    cost: the rate at which steps close the headroom, times the headroom left. The bound is UCB1's
    (Auer et al. 2002) with older steps discounted, because gains shrink as a search goes on
    (Garivier and Moulines 2011). Rates are in units of the best rate. Steps in flight count as
    steps without a gain.
    """
    fewest = min(range(len(arms)), key=lambda i: arms[i].begun)
    least = max(first, 1, _LEAST_SHARE * fmean(arm.begun for arm in arms))
    if allocation == "uniform" or arms[fewest].begun < least:
        return fewest
    bounds = _upper_bounds(arms)
    return max(range(len(arms)), key=lambda i: bounds[i])


def _upper_bounds(arms: Sequence[Arm]) -> list[float]:
    known = [arm.headroom for arm in arms if arm.headroom is not None]
    mean_headroom = fmean(known) if known else _UNKNOWN_HEADROOM
    headrooms = [mean_headroom if arm.headroom is None else arm.headroom for arm in arms]
    mean_cost = fmean([cost for arm in arms for cost in arm.costs] or [1.0])
    sums = [_discounted(arm, left, mean_cost) for arm, left in zip(arms, headrooms, strict=True)]
    steps, costs, closed = (math.fsum(column) for column in zip(*sums, strict=True))
    prior_cost, prior_closed = (_PRIOR_STEPS * total / steps for total in (costs, closed))
    rates = [(own + prior_closed) / (cost + prior_cost) for _, cost, own in sums]
    best = max(rates) or 1.0
    return [
        left * (rate / best + _EXPLORATION * math.sqrt(math.log(steps) / own_steps))
        for left, rate, (own_steps, _, _) in zip(headrooms, rates, sums, strict=True)
    ]


def _discounted(arm: Arm, headroom: float, mean_cost: float) -> tuple[float, float, float]:
    """Return discounted sums of steps, their costs and the fractions of headroom they closed."""
    steps, cost, closed = 0.0, 0.0, 0.0
    weight = 1.0
    for _ in range(arm.under_way):
        steps, cost, weight = steps + weight, cost + weight * mean_cost, weight * _DISCOUNT
    for gain, own_cost in zip(reversed(arm.gains), reversed(arm.costs), strict=True):
        headroom += gain
        steps, cost = steps + weight, cost + weight * own_cost
        closed += weight * (gain / headroom if gain > 0 else 0.0)
        weight *= _DISCOUNT
    return steps, cost, closed
