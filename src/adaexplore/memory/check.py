"""Checking of rules: run witness and remedy on the installed version.

A witness fails and its remedy passes. Of a speed rule both pass, and the remedy, timed beside the
witness in one interleaved measurement, is faster with the whole 95 % interval.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Protocol

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError
from adaexplore.core.rule import Gain, Platform, Rule, Signature
from adaexplore.core.verdict.evaluation import LAUNCHES_NONE, Evaluation, Failed, Passed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.memory.signature import signature_of

LEAST_SPEEDUP = 1.05
"""A speed rule holds where all of its interval is above this, and is gone where all is below."""

_DIGITS = 3
_DECIDED_BY_COMPILING = ("compile", "resource")
_REMEDIED_BY_COMPILING = (*_DECIDED_BY_COMPILING, "launch")
"""A witness whose launch fails is refused before anything runs. One that is not refused proves
nothing, but a remedy that is not refused is right in what the rule is about."""
_NOT_RUN = "the witness was not run here, and only a run shows its fault"


class Judge(Protocol):
    """Judges candidates of one problem; an `evaluate.base.Evaluator` is one."""

    def prepare(self) -> ReferenceFacts:
        """Run the reference; raise `BadProblemError` where it cannot be judged."""
        ...

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """The verdict; see `evaluate.base.Evaluator.evaluate`."""
        ...

    def close(self) -> None:
        """End its processes."""
        ...


NewJudge = Callable[[str, str], Judge]
"""A judge for a problem of this name and source."""


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """Result of running a rule's two programs.

    `true` if the witness fails and the remedy passes; `why` says in one line what is wrong
    otherwise. A wrong output stays one; how an exception is worded, and at which stage it is
    raised, differs between versions of Triton, and since the programs differ in nothing else, what
    the rule is about is why one of them fails. `rule` has the place noted under `holds` or `gone`,
    and what was measured under `gains`.
    """

    rule: Rule
    witness: Evaluation
    remedy: Evaluation
    true: bool
    why: str = ""

    @property
    def untimed(self) -> bool:
        """True for a speed rule with two correct programs and no GPU to time them on."""
        return (
            self.rule.kind == "speed"
            and isinstance(self.witness, Passed)
            and isinstance(self.remedy, Passed)
            and self.remedy.measured is None
        )


class Checker:
    """Checks rules in one place: a version of Triton, a target, and the GPU if there is one.

    Rules that share a reference share its judge, if they come one after the other. One whose
    reference cannot be judged here is not true here. `close` also calls `at_end`. Raises
    `InfrastructureError` where the machinery is gone.
    """

    def __init__(
        self, new_judge: NewJudge, where: Platform, at_end: Callable[[], None] = lambda: None
    ) -> None:
        self._new_judge = new_judge
        self._at_end = at_end
        self.where = where
        self._judge: Judge | None = None
        self._reference = ""

    def check(self, rule: Rule) -> CheckedRule:
        """Run both programs."""
        if rule.kind == "speed":
            return self._timed(rule)
        return self._checked(rule, self.verdict(rule, rule.witness))

    def observe(self, rule: Rule) -> CheckedRule:
        """Run both programs of a rule whose signature is not known yet.

        It becomes that of what the witness does here.
        """
        if rule.kind == "speed":
            return self._timed(replace(rule, signature=Signature("slow")))
        witness = self.verdict(rule, rule.witness)
        if isinstance(witness, Failed):
            rule = replace(rule, signature=signature_of(witness))
        return self._checked(rule, witness)

    def verdict(self, rule: Rule, source: str, beside: str | None = None) -> Evaluation:
        """Judge any program as a candidate for the rule's reference.

        With `beside`, a program that passed just now, it is timed beside that one.
        """
        if self._judge is None or rule.reference != self._reference:
            self._end_judge()
            judge = self._new_judge(rule.name, rule.reference)
            try:
                judge.prepare()
            except BadProblemError as error:
                judge.close()
                return Failed("infra_error", str(error))
            self._judge, self._reference = judge, rule.reference
        candidate = Candidate(source, rule.language)
        if beside is None:
            return self._judge.evaluate(candidate)
        return self._judge.evaluate(candidate, Candidate(beside, rule.language), again=True)

    def close(self) -> None:
        """End the processes."""
        self._end_judge()
        self._at_end()

    def _checked(self, rule: Rule, witness: Evaluation) -> CheckedRule:
        remedy = self.verdict(rule, rule.remedy)
        why = _objection(rule, witness, remedy)
        where = self.where.as_of(rule.kind)
        gone = isinstance(witness, Passed) or _compiles(rule, witness, _DECIDED_BY_COMPILING)
        noted = _noted(rule, where, true=not why, gone=gone)
        return CheckedRule(noted, witness, remedy, not why, why)

    def _timed(self, rule: Rule) -> CheckedRule:
        """Run a speed rule's programs, the remedy timed beside the witness."""
        witness = self.verdict(rule, rule.witness)
        remedy = self.verdict(rule, rule.remedy, beside=rule.witness)
        gain = _gain(self.where, witness, remedy)
        why = _doubt(witness, remedy, gain)
        gone = gain is not None and gain.speedup_ci[1] < LEAST_SPEEDUP
        noted = _noted(rule, self.where, true=not why, gone=gone, gain=gain)
        return CheckedRule(noted, witness, remedy, not why, why)

    def _end_judge(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._judge = None


def is_right(rule: Rule, remedy: Evaluation) -> bool:
    """Return True for the verdict on a remedy that passes, or compiles where that is enough."""
    return not isinstance(remedy, Failed) or _compiles(rule, remedy, _REMEDIED_BY_COMPILING)


def _compiles(rule: Rule, verdict: Evaluation, kinds: Collection[str]) -> bool:
    """Return True for a program that compiles and was not run; rules of `kinds` ask no more."""
    if not isinstance(verdict, Failed) or verdict.reason.startswith(LAUNCHES_NONE):
        return False
    return verdict.status == "not_run" and rule.kind in kinds


def _objection(rule: Rule, witness: Evaluation, remedy: Evaluation) -> str:
    if not isinstance(witness, Failed):
        return "the witness passes"
    if witness.status == "not_run":
        decided = _compiles(rule, witness, _DECIDED_BY_COMPILING)
        return "the witness compiles" if decided else _NOT_RUN
    if witness.status == "infra_error":
        return f"the witness could not be judged: {witness.reason}"
    if (witness.status == "wrong_output") != (rule.signature.status == "wrong_output"):
        return f"the witness fails in another way: {witness.status}: {witness.reason}"
    if isinstance(remedy, Failed) and not is_right(rule, remedy):
        return f"the remedy fails: {remedy.status}: {remedy.reason}"
    return ""


def _gain(where: Platform, witness: Evaluation, remedy: Evaluation) -> Gain | None:
    """Return the measured gain; None where the two were not timed beside each other."""
    timing = remedy.measured
    if not isinstance(witness, Passed) or timing is None or timing.parent is None:
        return None
    low, high = (round(end, _DIGITS) for end in timing.parent.speedup_ci)
    return Gain(where, round(timing.parent.speedup, _DIGITS), (low, high))


def _doubt(witness: Evaluation, remedy: Evaluation, gain: Gain | None) -> str:
    """Return the objection to a speed rule, "" if it holds."""
    for name, verdict in (("witness", witness), ("remedy", remedy)):
        if isinstance(verdict, Failed):
            return f"the {name} fails: {verdict.status}: {verdict.reason}"
    if gain is None:
        return "not measurable here: both programs are right, and nothing could time them together"
    low, high = gain.speedup_ci
    if low > LEAST_SPEEDUP:
        return ""
    standing = "is not faster" if high < LEAST_SPEEDUP else "may not be faster"
    measured = f"{gain.speedup:.3g}x, 95 % interval {low:.3g} to {high:.3g}"
    return f"the remedy {standing}: {measured}"


def _noted(
    rule: Rule, where: Platform, *, true: bool, gone: bool, gain: Gain | None = None
) -> Rule:
    """The rule with this place under `holds` or `gone`, or, where nothing is clear, neither."""
    holds = tuple(w for w in rule.holds if w != where) + ((where,) if true else ())
    ended = tuple(w for w in rule.gone if w != where) + ((where,) if gone else ())
    gains = tuple(g for g in rule.gains if g.where != where) + ((gain,) if gain else ())
    return replace(rule, holds=holds, gone=ended, gains=gains)
