"""The claim of a run, and how reliable it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adaexplore.core.evaluation import Estimate, Evaluation, Failed, Passed, Timing
from adaexplore.core.labels import ALGEBRA
from adaexplore.core.node import Node, best_correct
from adaexplore.report import text

Verdict = Literal["faster", "no_gain", "not_confirmed", "unmeasured", "no_correct", "empty"]


@dataclass(frozen=True, slots=True)
class Headline:
    """The claim of a run.

    `verdict` is "faster" only if the claimed interval lies above 1. `sentence` is the claim in one
    line, `caveat` a reservation, empty without one. `node_id` and `origin` name the candidate.
    `claimed` is the measurement behind the verdict: the confirmation if there is one, else the
    search's own. It is None if nothing may be claimed, and never an estimate.
    """

    verdict: Verdict
    sentence: str
    caveat: str = ""
    node_id: int | None = None
    origin: str = ""
    claimed: Passed | None = None
    confirmed: bool = False

    @property
    def timing(self) -> Timing | None:
        """Times of the claimed measurement."""
        return self.claimed.measured if self.claimed else None


def make_headline(
    nodes: Sequence[Node],
    best: Node | None,
    confirmations: Mapping[int, Evaluation],
    labels: Sequence[str] = (),
) -> Headline:
    """Return the headline of a run; `best` is its best correct node, None without one.

    The best passed confirmation is claimed, even if the search measured more. A failed confirmation
    withdraws the claim on its node. `labels` are the problem's: a sentence that claims a speedup
    names them, because it will be quoted alone, and says so if the candidate needs less work.
    """
    head = _headline(nodes, best, confirmations)
    if head.claimed is None:
        return head
    sentence = head.sentence
    if ALGEBRA in head.claimed.labels:
        sentence += " It needs less than the reference's work, by algebra."
    if labels:
        sentence += f" The problem is labelled {', '.join(labels)}."
    return replace(head, sentence=sentence)


def _headline(
    nodes: Sequence[Node], best: Node | None, confirmations: Mapping[int, Evaluation]
) -> Headline:
    if not nodes:
        return Headline("empty", "No step has been recorded yet.")
    if best is None or not isinstance(best.evaluation, Passed):
        return Headline("no_correct", f"No correct candidate in {_steps(nodes)}: {_counts(nodes)}.")
    searched = best.evaluation.timing
    if isinstance(searched, Estimate):
        return _unmeasured(nodes, best, searched)
    winner = _find(nodes, best_correct(confirmations))
    confirmed = confirmations[winner.id] if winner else None
    if winner and isinstance(confirmed, Passed) and confirmed.measured:
        caveat = _remeasured(winner, best, searched, confirmations)
        return _claim(winner, confirmed, confirmed.measured, caveat, confirmed=True)
    failed = confirmations.get(best.id)
    if isinstance(failed, Failed):
        return _withdrawn(best, searched, failed)
    return _claim(best, best.evaluation, searched, _unconfirmed(nodes), confirmed=False)


def _claim(node: Node, passed: Passed, timing: Timing, caveat: str, *, confirmed: bool) -> Headline:
    low, high = timing.speedup_ci
    baseline = text.baseline_name(timing.strongest)
    ratio = text.speedup(timing.speedup)
    measured = f"95 % interval {text.interval(timing.speedup_ci)}, {passed.precision} class"
    if passed.workloads:
        measured += f", geometric mean of {len(passed.workloads)} workloads"
    verdict: Verdict = "faster" if low > 1 else "no_gain"
    if verdict == "faster":
        sentence = f"{ratio} like-for-like speedup over {baseline} ({measured})."
    elif high < 1:
        sentence = (
            f"Nothing faster than the baseline: the best correct candidate runs at {ratio} "
            f"the speed of {baseline} ({measured})."
        )
    else:
        sentence = (
            f"Nothing clearly faster than the baseline: the best correct candidate measures "
            f"{ratio} against {baseline}, and its interval includes 1 ({measured})."
        )
    return Headline(verdict, sentence, caveat, node.id, node.proposal.origin, passed, confirmed)


def _unmeasured(nodes: Sequence[Node], best: Node, guess: Estimate) -> Headline:
    count = sum(isinstance(node.evaluation, Passed) for node in nodes)
    sentence = (
        f"No speedup is claimed: {count} of {_steps(nodes)} correct, none measured, because there "
        f"was no device to measure on. Node {best.id}: {text.estimate(guess)}."
    )
    return Headline("unmeasured", sentence, "", best.id, best.proposal.origin)


def _withdrawn(node: Node, searched: Timing, failed: Failed) -> Headline:
    sentence = (
        f"No speedup is claimed: node {node.id} measured {text.speedup(searched.speedup)} "
        f"during the search, but its confirmation ended in {failed.status}: "
        f"{text.one_line(failed.reason)}"
    )
    return Headline("not_confirmed", sentence, "", node.id, node.proposal.origin)


def _unconfirmed(nodes: Sequence[Node]) -> str:
    passed = sum(
        isinstance(node.evaluation, Passed) and node.evaluation.measured is not None
        for node in nodes
    )
    if passed == 1:
        return "Measured once, during the search, and not confirmed in a fresh process."
    return (
        "Measured during the search and not confirmed in a fresh process: "
        f"the best of {passed} measurements tends to flatter."
    )


def _remeasured(
    winner: Node, best: Node, searched: Timing, confirmations: Mapping[int, Evaluation]
) -> str:
    ratio = text.speedup(searched.speedup)
    others = [
        f"node {node_id}: {text.measured(evaluation)}"
        for node_id, evaluation in confirmations.items()
        if node_id != winner.id
    ]
    too = f" So were {', '.join(others)}." if others else ""
    if winner.id == best.id:
        return f"Measured again in a fresh process; the search had measured {ratio}.{too}"
    end = "" if best.id in confirmations else ", but has not been confirmed"
    return (
        f"Measured again in a fresh process.{too} "
        f"Node {best.id} measured {ratio} during the search{end}."
    )


def _find(nodes: Sequence[Node], node_id: int | None) -> Node | None:
    return next((node for node in nodes if node.id == node_id), None)


def _steps(nodes: Sequence[Node]) -> str:
    return "1 step" if len(nodes) == 1 else f"{len(nodes)} steps"


def _counts(nodes: Sequence[Node]) -> str:
    counts = Counter(node.evaluation.status for node in nodes)
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())
