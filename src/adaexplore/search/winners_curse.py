"""Defence against the winner's curse: noise must not steer the tree nor pick the winner.

The candidate that measured fastest was, on average, measured too fast (Efron 2011, Tweedie's
Formula and Selection Bias). Three corrections follow, each tuned by simulation (docs/search.md).
The tree shrinks a noisy measurement towards the parent's (`shrunk`). A candidate that would take
the lead is measured once more before it does (`needs_remeasure`), and the worse measurement counts
(`worst_of`). At the end of a search the best candidates are measured again until no other can be
the winner (`next_to_confirm`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from adaexplore.core.evaluation import Cost, Evaluation, Passed, Timing, rank
from adaexplore.core.node import best_correct

_NORMAL_95 = 3.92  # standard deviations between the ends of a 95 % interval
_TYPICAL_CHANGE = 0.1
"""Standard deviation of the change that one step makes, in `ln` of the speedup."""


def deviation(timing: Timing) -> float:
    """Return the standard deviation of `ln` of the speedup, derived from its 95 % interval.

    Infinite where the interval begins at 0.
    """
    low, high = timing.speedup_ci
    return math.log(high / low) / _NORMAL_95 if low > 0 else math.inf


def shrunk(evaluation: Evaluation, parent_log_speedup: float) -> Evaluation:
    """Return the evaluation with its speedup shrunk towards the parent's.

    `parent_log_speedup` is the parent's shrunk `ln` speedup, minus infinity where there is no
    measured parent. It is the mean of a normal prior on the kernel of this step. The result is the
    posterior mean: the measurement gets the weight `g ** 2 / (g ** 2 + deviation ** 2)`, with `g`
    the typical change of a step, and the prior gets the rest. That undoes the selection bias (Efron
    2011). A measurement without noise is unchanged, and so is the speedup over eager alone.
    """
    if not isinstance(evaluation, Passed) or parent_log_speedup == -math.inf:
        return evaluation
    timing = evaluation.measured
    if timing is None:
        return evaluation
    weight = _TYPICAL_CHANGE**2 / (_TYPICAL_CHANGE**2 + deviation(timing) ** 2)
    speedup = timing.speedup**weight * math.exp(parent_log_speedup) ** (1 - weight)
    return replace(evaluation, timing=replace(timing, speedup=speedup))


def needs_remeasure(evaluation: Evaluation, best: Evaluation | None) -> bool:
    """Return true for a measurement that claims to beat both PyTorch and the best so far."""
    timing = evaluation.measured if isinstance(evaluation, Passed) else None
    if timing is None or timing.speedup <= 1:
        return False
    return best is None or rank(evaluation) > rank(best)


def worst_of(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return the worst evaluation of one candidate, with the cost of all of them.

    Infrastructure errors count only where there is no other evaluation.
    """
    judged = [evaluation for evaluation in evaluations if evaluation.status != "infra_error"]
    worst = min(judged or evaluations, key=rank)
    costs = [evaluation.cost for evaluation in evaluations]
    return replace(worst, cost=Cost(sum(c.wall_s for c in costs), sum(c.device_s for c in costs)))


def next_to_confirm(
    searched: Mapping[int, Evaluation], confirmed: Mapping[int, Evaluation], limit: int
) -> int | None:
    """Return the id of the candidate to confirm next, None once the winner is certain.

    `searched` maps ids to the evaluations of the search, `confirmed` to those of the confirmation.
    The `limit` fastest candidates are confirmed in order of speed. The race ends at the first
    candidate whose interval lies below that of the best confirmed one, as in Hoeffding races (Maron
    and Moore 1994), with the measured 95 % intervals in place of Hoeffding's.
    """
    timed = {
        node_id: evaluation.measured
        for node_id, evaluation in searched.items()
        if isinstance(evaluation, Passed) and evaluation.measured
    }
    fastest = sorted(timed, key=lambda node_id: (-timed[node_id].speedup, node_id))
    for node_id in fastest[:limit]:
        if not _may_win(timed[node_id], confirmed):
            return None
        if node_id not in confirmed:
            return node_id
    return None


def _may_win(timing: Timing, confirmed: Mapping[int, Evaluation]) -> bool:
    leader = best_correct(confirmed)
    best = confirmed[leader] if leader is not None else None
    to_beat = best.measured if isinstance(best, Passed) else None
    return to_beat is None or timing.speedup_ci[1] >= to_beat.speedup_ci[0]
