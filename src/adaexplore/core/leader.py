"""The leading step of a run: the only source of the star, of best.py and of the headline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adaexplore.core.node import best_correct
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed
from adaexplore.core.verdict.labels import may_be_claimed


@dataclass(frozen=True, slots=True)
class Leader:
    """The leading step, and the evaluation that counts for it.

    It is `confirmed` if `evaluation` is a confirmation.
    """

    node_id: int
    evaluation: Evaluation
    confirmed: bool = False


def leader_of(
    searched: Mapping[int, Evaluation], confirmed: Mapping[int, Evaluation]
) -> Leader | None:
    """Return the leading step; None where no step is correct.

    `searched` maps every step to the evaluation of the search, `confirmed` some of them to their
    confirmation. A step that failed its confirmation is refuted. Of the others that may be claimed
    the fastest of the search leads, until it is confirmed: then the fastest of the confirmed leads.
    Where none is left, the fastest of the search is still named, and nothing is claimed for it.
    """
    valid = {i: each for i, each in confirmed.items() if i in searched and is_claimable(each)}
    left = {
        i: each
        for i, each in searched.items()
        if is_claimable(each) and not is_refuted(confirmed.get(i))
    }
    fastest = best_correct(left)
    if fastest is None:
        fastest = best_correct(searched)
        return None if fastest is None else Leader(fastest, searched[fastest])
    if isinstance(valid.get(fastest), Passed):
        fastest = best_correct(valid)
        assert fastest is not None
        return Leader(fastest, valid[fastest], confirmed=True)
    return Leader(fastest, searched[fastest])


def is_claimable(evaluation: Evaluation) -> bool:
    """Return False for a kernel that is correct and rests on luck."""
    return not isinstance(evaluation, Passed) or may_be_claimed(evaluation.labels)


def is_refuted(confirmation: Evaluation | None) -> bool:
    """Return True for a failed confirmation; trouble of the machine says nothing of a kernel."""
    return isinstance(confirmation, Failed) and confirmation.status != "infra_error"
