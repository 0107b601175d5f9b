"""Defence against the winner's curse: noise must not steer the tree nor pick the winner.

The candidate that measured fastest was, on average, measured too fast (Efron 2011, Tweedie's
Formula and Selection Bias). Three corrections follow, each tuned by simulation (docs/search.md).
The tree shrinks a noisy measurement towards the parent's (`shrunk`). A candidate that would take
the lead is measured once more before it does (`needs_remeasure`), and the worse measurement counts
(`worst_of`). At the end of a search the best candidates are measured again until no other can be
the winner (`next_to_confirm`). A confirmation that is noisy or contradicts the search is measured
again; `settled` says which measurement counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from adaexplore.core.node import best_correct
from adaexplore.core.verdict.evaluation import Cost, Evaluation, Failed, Passed, Timing, rank

_NORMAL_95 = 3.92  # standard deviations between the ends of a 95 % interval
_TYPICAL_CHANGE = 0.1
"""Standard deviation of the change that one step makes, in `ln` of the speedup."""
_MOST_CONFIRMATIONS = 3
_SLACK = 1.05
"""Factor by which two processes may differ beyond their intervals: addresses, caches, clocks."""


def deviation(timing: Timing) -> float:
    """Return the standard deviation of `ln` of the speedup, derived from its 95 % interval.

    Infinite where the interval begins at 0.
    """
    low, high = timing.noise_ci
    return math.log(high / low) / _NORMAL_95 if low > 0 else math.inf


def shrunk(evaluation: Evaluation, parent_log_speedup: float) -> Evaluation:
    """Return the evaluation with its speedup shrunk towards the parent's.

    `parent_log_speedup` is the parent's shrunk `ln` speedup, minus infinity where there is no
    measured parent. It is the mean of a normal prior on the kernel of this step. The result is the
    posterior mean: the measurement gets the weight `g ** 2 / (g ** 2 + deviation ** 2)`, with `g`
    the typical change of a step, and the prior gets the rest. That undoes the selection bias (Efron
    2011). A measurement without noise is unchanged, and so is the speedup over eager alone. The
    estimate has no interval of its own.
    """
    if not isinstance(evaluation, Passed) or parent_log_speedup == -math.inf:
        return evaluation
    timing = evaluation.measured
    if timing is None:
        return evaluation
    weight = _TYPICAL_CHANGE**2 / (_TYPICAL_CHANGE**2 + deviation(timing) ** 2)
    speedup = timing.speedup**weight * math.exp(parent_log_speedup) ** (1 - weight)
    estimate = replace(
        timing,
        speedup=speedup,
        speedup_ci=(speedup, speedup),
        waited=0.0,
        allowance=(1.0, 1.0),
    )
    return replace(evaluation, timing=estimate)


def needs_remeasure(evaluation: Evaluation, best: Evaluation | None) -> bool:
    """Return true for a measurement that claims to beat both PyTorch and the best so far.

    A noisy one claims little: it is measured again if its middle is above that of the best.
    """
    timing = evaluation.measured
    if timing is None or timing.speedup <= 1:
        return False
    to_beat = best.measured if best else None
    if best is None or to_beat is None or rank(evaluation) > rank(best):
        return True
    return timing.is_noisy and timing.speedup > to_beat.speedup


def worst_of(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return the worst evaluation of one candidate, with the cost of all of them.

    Infrastructure errors count only where there is no other evaluation, and noisy measurements only
    where there is no better one.
    """
    judged = [evaluation for evaluation in evaluations if evaluation.status != "infra_error"]
    clear = [evaluation for evaluation in judged if not _is_noisy(evaluation)]
    worst = min(clear or judged or evaluations, key=rank)
    return replace(worst, cost=Cost.total(evaluation.cost for evaluation in evaluations))


def settled(searched: Evaluation, confirmations: Sequence[Evaluation]) -> Evaluation:
    """Return the confirmation of a candidate that counts.

    A failure counts. Of measurements, the last one counts that is not noisy and agrees with
    another, that of the search included; without agreement the worst that is not noisy; and the one
    with the narrowest interval where all are noisy.
    """
    judged = [each for each in confirmations if each.status != "infra_error"]
    failed = next((each for each in judged if isinstance(each, Failed)), None)
    if failed or not judged:
        return failed or confirmations[-1]
    clear = [each for each in judged if not _is_noisy(each)]
    return _agreed(searched, clear) or min(clear or judged, key=rank if clear else _width)


def next_to_confirm(
    searched: Mapping[int, Evaluation],
    confirmations: Mapping[int, Sequence[Evaluation]],
    limit: int,
) -> int | None:
    """Return the id of the candidate to confirm next, None once the winner is certain.

    `searched` maps ids to the evaluations of the search, `confirmations` to all of the
    confirmation. The `limit` fastest candidates are confirmed in order of speed, each until its
    result is settled or the most attempts are made. The race ends at the first candidate whose
    interval lies below that of the best confirmed one, as in Hoeffding races (Maron and Moore
    1994), with the measured 95 % intervals in place of Hoeffding's.
    """
    timed = {
        node_id: evaluation.measured
        for node_id, evaluation in searched.items()
        if evaluation.measured
    }
    fastest = sorted(timed, key=lambda node_id: (-timed[node_id].at_least, node_id))
    confirmed = {i: settled(searched[i], tries) for i, tries in confirmations.items() if tries}
    for node_id in fastest[:limit]:
        tries = confirmations.get(node_id, ())
        if not tries and not _may_win(timed[node_id], confirmed):
            return None
        if not tries or _is_open(searched[node_id], tries):
            return node_id
    return None


def _is_open(searched: Evaluation, tries: Sequence[Evaluation]) -> bool:
    """Return True where one more confirmation may settle the result of a candidate."""
    if len(tries) >= _MOST_CONFIRMATIONS or any(isinstance(each, Failed) for each in tries):
        return False
    return _agreed(searched, [each for each in tries if not _is_noisy(each)]) is None


def _agreed(searched: Evaluation, clear: Sequence[Evaluation]) -> Evaluation | None:
    """Return the last of some measurements that agrees with one before it."""
    for i in range(len(clear) - 1, -1, -1):
        if any(_agree(clear[i], other) for other in (searched, *clear[:i])):
            return clear[i]
    return None


def _agree(one: Evaluation, other: Evaluation) -> bool:
    """Return True for two measurements of which neither is noisy nor contradicts the other.

    The upper ends are those of claims, which allow for what the clocks of two processes differ by.
    """
    if not (isinstance(one, Passed) and isinstance(other, Passed)):
        return False
    if one.measured is None or other.measured is None:
        return True
    low, high = one.measured.noise_ci[0], _SLACK * one.measured.speedup_ci[1]
    other_low, other_high = other.measured.noise_ci[0], _SLACK * other.measured.speedup_ci[1]
    return not _is_noisy(other) and low <= other_high and other_low <= high


def _is_noisy(evaluation: Evaluation) -> bool:
    return evaluation.measured is not None and evaluation.measured.is_noisy


def _width(evaluation: Evaluation) -> float:
    return deviation(evaluation.measured) if evaluation.measured else math.inf


def _may_win(timing: Timing, confirmed: Mapping[int, Evaluation]) -> bool:
    leader = best_correct(confirmed)
    best = confirmed[leader] if leader is not None else None
    to_beat = best.measured if best else None
    return to_beat is None or timing.noise_ci[1] >= to_beat.noise_ci[0]
