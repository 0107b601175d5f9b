"""Running a rule's witness and remedy: is it true here, today?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adaexplore.candidate import Candidate
from adaexplore.errors import BadProblemError
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

    Rules that share a reference share its judge, if they come one after the other. One whose
    reference cannot be judged here is not true here. `close` also calls `at_end`. Raises
    `InfrastructureError` where the machinery is gone.
    """

    def __init__(
        self, new_judge: NewJudge, where: Where, at_end: Callable[[], None] = lambda: None
    ) -> None:
        self._new_judge = new_judge
        self._at_end = at_end
        self.where = where
        self._judge: Judge | None = None
        self._reference = ""

    def check(self, rule: Rule) -> Checked:
        """Runs both programs."""
        return self._checked(rule, self.verdict(rule, rule.witness))

    def observe(self, rule: Rule) -> Checked:
        """Runs both programs of a rule whose signature is not known yet.

        It becomes that of what the witness does here.
        """
        witness = self.verdict(rule, rule.witness)
        if isinstance(witness, Failed):
            rule = replace(rule, signature=signature_of(witness))
        return self._checked(rule, witness)

    def verdict(self, rule: Rule, source: str) -> Evaluation:
        """What becomes of any program as a candidate for the rule's reference."""
        if self._judge is None or rule.reference != self._reference:
            self._end_judge()
            judge = self._new_judge(rule.name, rule.reference)
            try:
                judge.prepare()
            except BadProblemError as error:
                judge.close()
                return Failed("infra_error", str(error))
            self._judge, self._reference = judge, rule.reference
        return self._judge.evaluate(Candidate(source, "triton"))

    def close(self) -> None:
        """Ends the processes."""
        self._end_judge()
        self._at_end()

    def _checked(self, rule: Rule, witness: Evaluation) -> Checked:
        remedy = self.verdict(rule, rule.remedy)
        why = _objection(rule, witness, remedy)
        noted = _noted(rule, self.where, true=not why, gone=isinstance(witness, Passed))
        return Checked(noted, witness, remedy, not why, why)

    def _end_judge(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._judge = None


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
