"""What a measurement is worth: luck shall not steer the tree, nor name the winner.

Whoever is chosen for having measured fastest was, on average, measured too fast (Efron 2011,
Tweedie's Formula and Selection Bias). Three things are done about it, each tried by simulation
(docs/search.md): the tree counts a noisy measurement for less (`shrunk`), what would take the
lead is measured once more before it does (`needs_remeasure`, `worst_of`), and the best of the end
are measured afresh until no other can be better (`next_to_confirm`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from adaexplore.core.evaluation import Cost, Evaluation, Passed, Timing, rank
from adaexplore.core.node import best_correct

_NORMAL_95 = 3.92  # standard deviations between the ends of a 95 % interval
_USUAL_GAIN = 0.1
"""Standard deviation of what a step changes, in `ln` of the speedup."""


def deviation(timing: Timing) -> float:
    """Standard deviation of `ln` of the speedup, as its 95 % interval says.

    Infinite for one so slow that its interval begins at 0.
    """
    low, high = timing.speedup_ci
    return math.log(high / low) / _NORMAL_95 if low > 0 else math.inf


def shrunk(evaluation: Evaluation, before: float) -> Evaluation:
    """The evaluation with the speedup that the tree shall believe.

    `before` is what it believes of the parent, in `ln` of the speedup, and minus infinity where
    there is no parent to believe anything of. The step's own kernel is expected around there, so a
    measurement counts by its share of the variance, `g ** 2 / (g ** 2 + deviation ** 2)` with `g`
    the usual gain of a step, and `before` for the rest: the posterior mean of a normal prior, which
    is what undoes the bias of choosing the largest (Efron 2011). A quiet measurement stays as it
    is; the reward over eager alone does not change.
    """
    if not isinstance(evaluation, Passed) or before == -math.inf:
        return evaluation
    timing = evaluation.measured
    if timing is None:
        return evaluation
    share = _USUAL_GAIN**2 / (_USUAL_GAIN**2 + deviation(timing) ** 2)
    speedup = timing.speedup**share * math.exp(before) ** (1 - share)
    return replace(evaluation, timing=replace(timing, speedup=speedup))


def needs_remeasure(evaluation: Evaluation, best: Evaluation | None) -> bool:
    """Whether a measurement claims to beat PyTorch and all that was measured so far."""
    timing = evaluation.measured if isinstance(evaluation, Passed) else None
    if timing is None or timing.speedup <= 1:
        return False
    return best is None or rank(evaluation) > rank(best)


def worst_of(measurements: Sequence[Evaluation]) -> Evaluation:
    """The one of a candidate's evaluations that counts: the worst, at the cost of all of them.

    One that the machinery failed counts only where there is no other.
    """
    judged = [one for one in measurements if one.status != "infra_error"]
    worst = min(judged or measurements, key=rank)
    costs = [one.cost for one in measurements]
    return replace(worst, cost=Cost(sum(c.wall_s for c in costs), sum(c.device_s for c in costs)))


def next_to_confirm(
    searched: Mapping[int, Evaluation], confirmed: Mapping[int, Evaluation], most: int
) -> int | None:
    """Who of the best `most` measured is to be confirmed next; None once the winner is certain.

    By their ids: `searched` is what the search measured and `confirmed` what came of measuring
    again. The fastest come first, and it ends with the one whose interval lies below that of the
    best confirmed: a race as of Maron and Moore 1994 (Hoeffding Races), with our intervals.
    """
    timed = {
        name: evaluation.measured
        for name, evaluation in searched.items()
        if isinstance(evaluation, Passed) and evaluation.measured
    }
    for name in sorted(timed, key=lambda name: (-timed[name].speedup, name))[:most]:
        if not _may_win(timed[name], confirmed):
            return None
        if name not in confirmed:
            return name
    return None


def _may_win(timing: Timing, confirmed: Mapping[int, Evaluation]) -> bool:
    leader = best_correct(confirmed)
    best = confirmed[leader] if leader is not None else None
    to_beat = best.measured if isinstance(best, Passed) else None
    return to_beat is None or timing.speedup_ci[1] >= to_beat.speedup_ci[0]
