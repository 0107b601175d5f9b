"""The evaluations of a run, found again for identical candidates."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.verdict.evaluation import Cost, Evaluation, Passed
from adaexplore.languages.fingerprint import fingerprint


class EvaluationCache:
    """The first evaluation of each source, passed fingerprint and passed compiled code.

    Failures are cached by exact source only, because their messages quote line numbers. An empty
    hash is equal to none.
    """

    def __init__(self) -> None:
        self._by_text: dict[str, Evaluation] = {}
        self._by_form: dict[str, Passed] = {}
        self._by_code: dict[str, Passed] = {}

    def add(self, node: Node) -> None:
        """Add a recorded step, unless it has no candidate or no verdict."""
        evaluation = node.evaluation
        if node.proposal.failure or evaluation.status == "infra_error":
            return
        self._by_text.setdefault(node.candidate.digest, evaluation)
        if isinstance(evaluation, Passed) and evaluation.descriptor and not node.reused:
            self._by_form.setdefault(evaluation.descriptor.form, evaluation)
            self._by_code.setdefault(evaluation.descriptor.code, evaluation)

    def of(self, candidate: Candidate) -> Evaluation | None:
        """Return the evaluation of an identical candidate; None if there is none."""
        same_text = self._by_text.get(candidate.digest)
        if same_text is not None:
            return same_text
        key = fingerprint(candidate.source)
        return taken_over(self._by_form[key], Cost()) if key and key in self._by_form else None

    def compiled_alike(self, evaluation: Evaluation) -> Passed | None:
        """Return the evaluation of a candidate with the same compiled code, at this one's cost.

        None unless both passed in the same precision class.
        """
        if not isinstance(evaluation, Passed) or evaluation.descriptor is None:
            return None
        code = evaluation.descriptor.code
        first = self._by_code.get(code) if code else None
        if first is None or first.precision != evaluation.precision:
            return None
        return taken_over(first, evaluation.cost)


def taken_over(passed: Passed, cost: Cost) -> Passed:
    """Return the result for another candidate, whose parent it was not compared with."""
    timing = passed.measured
    if timing is None:
        return replace(passed, cost=cost)
    return replace(passed, cost=cost, timing=replace(timing, parent=None))
