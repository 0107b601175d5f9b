"""Which of several problems gets the next steps: the one where most can be expected of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

Allocation = Literal["headroom", "uniform"]

_FADING = 0.95
"""What a step says about the next counts so much less with each step after it."""

_EXPLORE = 0.6
_PRIOR_STEPS = 4.0
"""Beside its own, a problem has so many steps of the average problem to its credit."""

_LEAST_SHARE = 0.65
"""No problem gets fewer steps than this part of the mean: gains may come late."""

_UNKNOWN_HEADROOM = 1.0
"""Where nobody's headroom is known any number does."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Where a problem's search stands.

    `gains` has ln of the factor by which each step raised the best speedup, `costs` what each step
    took, in a unit that is the same for all problems. `headroom` is ln of what the roofline leaves
    to gain, None if that is not known. `under_way` steps were begun and have not ended.
    """

    gains: Sequence[float] = ()
    costs: Sequence[float] = ()
    headroom: float | None = None
    under_way: int = 0

    @property
    def begun(self) -> int:
        """Steps that were made, or are being made."""
        return len(self.gains) + self.under_way


def choose_problem(standings: Sequence[Arm], allocation: Allocation, first: int) -> int:
    """The index of the problem whose search goes on.

    Every problem gets `first` steps, at least one, before any gets more, and none falls far behind
    the mean. For the rest, "uniform" is the one with the fewest, and "headroom" the one with the
    highest upper confidence bound on what its next step gains for its cost: the rate at which steps
    close the headroom, times what is left of it. The bound is UCB1's (Auer et al. 2002), with older
    steps discounted, since they gain less and less as a search goes on (Garivier and Moulines
    2011); rates are in units of the best one's. Steps under way count as if nothing came of them.
    """
    fewest = min(range(len(standings)), key=lambda i: standings[i].begun)
    least = max(first, 1, _LEAST_SHARE * fmean(s.begun for s in standings))
    if allocation == "uniform" or standings[fewest].begun < least:
        return fewest
    known = [s.headroom for s in standings if s.headroom is not None]
    usual = fmean(known) if known else _UNKNOWN_HEADROOM
    rooms = [usual if s.headroom is None else s.headroom for s in standings]
    usual_cost = fmean([cost for s in standings for cost in s.costs] or [1.0])
    faded = [_faded(s, room, usual_cost) for s, room in zip(standings, rooms, strict=True)]
    steps, costs, closed = (math.fsum(column) for column in zip(*faded, strict=True))
    prior_cost, prior_closed = (_PRIOR_STEPS * total / steps for total in (costs, closed))
    rates = [(own + prior_closed) / (cost + prior_cost) for _, cost, own in faded]
    top = max(rates) or 1.0

    def bound(i: int) -> float:
        unsure = _EXPLORE * math.sqrt(math.log(steps) / faded[i][0])
        return rooms[i] * (rates[i] / top + unsure)

    return max(range(len(standings)), key=bound)


def _faded(standing: Arm, room: float, usual_cost: float) -> tuple[float, float, float]:
    """Steps, their cost and the parts of the headroom that they closed, the last counting most."""
    steps, cost, closed = 0.0, 0.0, 0.0
    weight = 1.0
    for _ in range(standing.under_way):
        steps, cost, weight = steps + weight, cost + weight * usual_cost, weight * _FADING
    for gain, own_cost in zip(reversed(standing.gains), reversed(standing.costs), strict=True):
        room += gain
        steps, cost = steps + weight, cost + weight * own_cost
        closed += weight * (gain / room if gain > 0 else 0.0)
        weight *= _FADING
    return steps, cost, closed
