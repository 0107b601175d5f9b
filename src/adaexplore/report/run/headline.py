"""The claim of a run, and how reliable it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adaexplore.core.leader import Leader, is_claimable, is_refuted
from adaexplore.core.node import Node, best_correct
from adaexplore.core.verdict.evaluation import Estimate, Evaluation, Failed, Passed, Timing
from adaexplore.core.verdict.labels import ALGEBRA, CONSTANT_WEIGHTS
from adaexplore.report import text

Verdict = Literal[
    "faster",
    "no_gain",
    "too_noisy",
    "unproven",
    "not_confirmed",
    "unmeasured",
    "no_correct",
    "reported",
    "empty",
]


@dataclass(frozen=True, slots=True)
class Headline:
    """The claim of a run.

    `verdict` is "faster" only if the claimed interval lies above 1, "too_noisy" if a noisy one
    includes 1 or a gain was measured under load, and "unproven" if calls are so short that a quiet
    one includes 1. `sentence` is the claim in one line, `caveat` a reservation, empty without one.
    `node_id` and `origin` name the candidate. `claimed` is the measurement behind the verdict: the
    confirmation if there is one, else the search's own. It is None where there is no measurement to
    claim, and never an estimate.
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

    @property
    def by_algebra(self) -> bool:
        """True if the claimed kernel needs less than the reference's work."""
        return self.claimed is not None and ALGEBRA in self.claimed.labels


def make_headline(
    nodes: Sequence[Node],
    leader: Leader | None,
    confirmations: Mapping[int, Evaluation],
    labels: Sequence[str] = (),
) -> Headline:
    """Return the headline of a run; `leader` is its leading step, None without a correct one.

    The evaluation that counts for the leading step is claimed. A failed confirmation withdraws the
    claim on its node. `labels` are the problem's: a sentence that claims a speedup names them,
    because it will be quoted alone, and the labels of the candidate that limit it.
    """
    head = _headline(nodes, leader, confirmations)
    if head.claimed is None:
        return head
    sentence = head.sentence
    if head.by_algebra:
        sentence += " It needs less than the reference's work, by algebra."
    if CONSTANT_WEIGHTS in head.claimed.labels:
        sentence += " It counts on weights that keep their first, constant values."
    if labels:
        sentence += f" The problem is labelled {', '.join(labels)}."
    return replace(head, sentence=sentence)


def _headline(
    nodes: Sequence[Node], leader: Leader | None, confirmations: Mapping[int, Evaluation]
) -> Headline:
    if not nodes:
        return Headline("empty", "No step has been recorded yet.")
    if leader is None and any(node.evaluation.status == "reported" for node in nodes):
        return Headline("reported", _reported(nodes))
    if leader is None or not isinstance(leader.evaluation, Passed):
        return Headline("no_correct", f"No correct candidate in {_steps(nodes)}: {_counts(nodes)}.")
    by_id = {node.id: node for node in nodes}
    node, passed = by_id[leader.node_id], leader.evaluation
    failed = confirmations.get(leader.node_id)
    if isinstance(passed.timing, Estimate):
        return _unmeasured(nodes, node, passed.timing)
    if isinstance(failed, Failed) and is_refuted(failed):
        return _withdrawn(node, passed.timing, failed)
    if not is_claimable(passed):
        return _waiting(node, passed.timing)
    others = {i: each for i, each in confirmations.items() if i in by_id and i != leader.node_id}
    if not leader.confirmed:
        caveat = _unconfirmed(nodes) + _others(others)
        return _claim(node, passed, passed.timing, caveat, confirmed=False)
    caveat = _remeasured(node, by_id, others)
    return _claim(node, passed, passed.timing, caveat, confirmed=True)


def _claim(node: Node, passed: Passed, timing: Timing, caveat: str, *, confirmed: bool) -> Headline:
    low, high = timing.speedup_ci
    baseline = text.baseline_name(timing.strongest)
    ratio = text.speedup(timing.speedup)
    measured = f"95 % interval {text.interval(timing.speedup_ci)}, {passed.precision} class"
    if passed.workloads:
        measured += f", geometric mean of {len(passed.workloads)} workloads"
    claimed = f"{text.measured_speedup(timing)}{measured}"
    verdict: Verdict = "too_noisy" if timing.is_too_noisy else "faster" if low > 1 else "no_gain"
    if timing.is_unproven:
        caveat = f"{text.unproven(timing).capitalize()}. {caveat}".rstrip()
        verdict = "unproven" if low <= 1 <= high else verdict
    if verdict == "faster" and timing.is_noisy:
        sentence = (
            f"At least {text.speedup(low)} like-for-like speedup over {baseline}; the measurement "
            f"was noisy ({ratio}, {measured})."
        )
    elif verdict == "faster" and timing.is_unproven:
        sentence = (
            f"At least {text.speedup(timing.claim)} like-for-like speedup over {baseline} "
            f"({claimed})."
        )
    elif verdict == "faster":
        sentence = f"{text.claim(timing)} like-for-like speedup over {baseline} ({claimed})."
    elif timing.is_under_load:
        sentence = (
            f"Measured under load: no claim. The best correct candidate measures {ratio} against "
            f"{baseline} ({measured}), while other programs kept the processors busy. Measure "
            "again on a quiet machine."
        )
    elif verdict == "too_noisy":
        sentence = (
            f"Too noisy to tell: the best correct candidate measures {ratio} against {baseline} "
            f"({measured}). Resume the run, or measure again, on a quiet machine."
        )
    elif verdict == "unproven":
        sentence = (
            f"Not proven faster: the best correct candidate measures {ratio} against {baseline} "
            f"({measured})."
        )
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


def _reported(nodes: Sequence[Node]) -> str:
    right = [node for node in nodes if node.evaluation.status == "reported"]
    sentence = (
        f"No speedup is claimed: others report {len(right)} of {_steps(nodes)} correct, and none "
        "was judged here."
    )
    timed = [(found.speedup or 0.0, n.id) for n in right if (found := n.evaluation.published)]
    best, step = max(timed, default=(0.0, 0))
    if not best:
        return sentence
    return f"{sentence} The best, node {step}, is reported at {text.speedup(best)} over eager."


def _withdrawn(node: Node, searched: Timing, failed: Failed) -> Headline:
    sentence = (
        f"No speedup is claimed: node {node.id} measured {text.speedup(searched.speedup)} "
        f"during the search, but its confirmation ended in {failed.status}: "
        f"{text.one_line(failed.reason)}"
    )
    return Headline("not_confirmed", sentence, "", node.id, node.proposal.origin)


def _waiting(node: Node, searched: Timing) -> Headline:
    sentence = (
        f"No speedup is claimed: node {node.id} measured {text.speedup(searched.speedup)}, but its "
        "blocks wait for other blocks of their launch, and hang where not all run at once. Launch "
        "it cooperatively, or pass --allow-waiting."
    )
    return Headline("not_confirmed", sentence, "", node.id, node.proposal.origin)


def _unconfirmed(nodes: Sequence[Node]) -> str:
    passed = sum(node.evaluation.measured is not None for node in nodes)
    if passed == 1:
        return "Measured once, during the search, and not confirmed in a fresh process."
    return (
        "Measured during the search and not confirmed in a fresh process: "
        f"the best of {passed} measurements tends to flatter."
    )


def _remeasured(winner: Node, by_id: Mapping[int, Node], others: Mapping[int, Evaluation]) -> str:
    """Return the caveat of a confirmed claim; the search had measured some step as the fastest."""
    fastest = best_correct({i: node.evaluation for i, node in by_id.items()})
    best = by_id[fastest] if fastest is not None else winner
    ratio = _searched(best)
    if winner.id == best.id:
        head = f"Measured again in a fresh process; the search had measured {ratio}."
        return head + _others(others)
    return (
        f"Measured again in a fresh process.{_others(others)} "
        f"Node {best.id} measured {ratio} during the search."
    )


def _searched(node: Node) -> str:
    timing = node.evaluation.measured
    return text.speedup(timing.speedup) if timing else "nothing"


def _others(others: Mapping[int, Evaluation]) -> str:
    named = [f"node {node_id}: {text.measured(each)}" for node_id, each in others.items()]
    return f" Measured again too: {', '.join(named)}." if named else ""


def _steps(nodes: Sequence[Node]) -> str:
    return "1 step" if len(nodes) == 1 else f"{len(nodes)} steps"


def _counts(nodes: Sequence[Node]) -> str:
    counts = Counter(node.evaluation.status for node in nodes)
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())
