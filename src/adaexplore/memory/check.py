"""Running a rule's witness and remedy: is it true here, today?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adaexplore.candidate import Candidate
from adaexplore.evaluation import Evaluation, Failed, Passed
from adaexplore.memory.signature import signature_of
from adaexplore.rule import Rule, Where


class Judge(Protocol):
    """Judges candidates of one problem; an `evaluate.base.Evaluator` is one."""

    def prepare(self) -> dict[str, Any]:
        """Runs the reference; raises `BadProblemError` where it cannot be judged."""
        ...

    def evaluate(self, candidate: Candidate) -> Evaluation:
        """The verdict."""
        ...

    def close(self) -> None:
        """Ends its processes."""
        ...


NewJudge = Callable[[str, str], Judge]
"""A judge for a problem of this name and source."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a rule's two programs.

    `true` if the witness fails and the remedy passes; `why` says in one line what is wrong
    otherwise. A wrong output stays one; how an exception is worded, and at which stage it is
    raised, differs between versions of Triton, and since the programs differ in nothing else, what
    the rule is about is why one of them fails. `rule` has the place noted under `holds` or `gone`.
    """

    rule: Rule
    witness: Evaluation
    remedy: Evaluation
    true: bool
    why: str = ""


class Checker:
    """Checks rules in one place: a version of Triton and a target.

    Rules that share a reference share its judge, if they come one after the other. Raises
    `BadProblemError` for a rule whose reference cannot be judged, `InfrastructureError` where the
    machinery is gone.
    """

    def __init__(self, new_judge: NewJudge, where: Where) -> None:
        self._new_judge = new_judge
        self.where = where
        self._judge: Judge | None = None
        self._reference = ""

    def check(self, rule: Rule) -> Checked:
        """Runs both programs."""
        judge = self._judge_for(rule)
        witness = judge.evaluate(Candidate(rule.witness, "triton"))
        remedy = judge.evaluate(Candidate(rule.remedy, "triton"))
        why = _objection(rule, witness, remedy)
        noted = _noted(rule, self.where, true=not why, gone=isinstance(witness, Passed))
        return Checked(noted, witness, remedy, not why, why)

    def observed(self, rule: Rule) -> Rule:
        """The rule with the signature of what its witness does here.

        Raises `ValueError` if the witness does not fail.
        """
        verdict = self._judge_for(rule).evaluate(Candidate(rule.witness, "triton"))
        if not isinstance(verdict, Failed):
            raise ValueError(f"the witness of {rule.name} does not fail here")
        return replace(rule, signature=signature_of(verdict))

    def close(self) -> None:
        """Ends the processes."""
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    def _judge_for(self, rule: Rule) -> Judge:
        if self._judge is None or rule.reference != self._reference:
            self.close()
            self._judge = self._new_judge(rule.name, rule.reference)
            self._reference = rule.reference
            self._judge.prepare()
        return self._judge


def _objection(rule: Rule, witness: Evaluation, remedy: Evaluation) -> str:
    if not isinstance(witness, Failed):
        return "the witness passes"
    if witness.status == "infra_error":
        return f"the witness could not be judged: {witness.reason}"
    if (witness.status == "wrong_output") != (rule.signature.status == "wrong_output"):
        return f"the witness fails in another way: {witness.status}: {witness.reason}"
    if isinstance(remedy, Failed):
        return f"the remedy fails: {remedy.status}: {remedy.reason}"
    return ""


def _noted(rule: Rule, where: Where, *, true: bool, gone: bool) -> Rule:
    """The rule with this place under `holds` or `gone`, or, where nothing is clear, neither."""
    holds = tuple(w for w in rule.holds if w != where) + ((where,) if true else ())
    ended = tuple(w for w in rule.gone if w != where) + ((where,) if gone else ())
    return replace(rule, holds=holds, gone=ended)
