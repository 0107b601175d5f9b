"""What a run has evaluated, by all that makes one candidate the same as another."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Cost, Evaluation, Passed
from adaexplore.core.node import Node
from adaexplore.languages.fingerprint import fingerprint


class Known:
    """The first evaluation of every text, and of what passed by its form and its compiled code.

    What failed is tried again unless its text is the same: what it is told names its lines. Where a
    hash is empty, or an older release evaluated, nothing is the same.
    """

    def __init__(self) -> None:
        self._by_text: dict[str, Evaluation] = {}
        self._by_form: dict[str, Passed] = {}
        self._by_code: dict[str, Passed] = {}

    def add(self, node: Node) -> None:
        """Takes note of a recorded step; not of one without a candidate or without a verdict."""
        evaluation = node.evaluation
        if node.proposal.failure or evaluation.status == "infra_error":
            return
        self._by_text.setdefault(node.candidate.digest, evaluation)
        if isinstance(evaluation, Passed) and evaluation.descriptor and not node.reused:
            self._by_form.setdefault(evaluation.descriptor.form, evaluation)
            self._by_code.setdefault(evaluation.descriptor.code, evaluation)

    def of(self, candidate: Candidate) -> Evaluation | None:
        """The evaluation of one that reads the same; None if there is none."""
        same_text = self._by_text.get(candidate.digest)
        if same_text is not None:
            return same_text
        key = fingerprint(candidate.source)
        return taken_over(self._by_form[key], Cost()) if key and key in self._by_form else None

    def compiled_alike(self, evaluation: Evaluation) -> Passed | None:
        """The evaluation of one that passed too and compiled to the same, at this one's cost."""
        if not isinstance(evaluation, Passed) or evaluation.descriptor is None:
            return None
        code = evaluation.descriptor.code
        first = self._by_code.get(code) if code else None
        if first is None or first.precision != evaluation.precision:
            return None
        return taken_over(first, evaluation.cost)


def taken_over(passed: Passed, cost: Cost) -> Passed:
    """A result as another's: nobody compared that with its parent."""
    timing = passed.measured
    if timing is None:
        return replace(passed, cost=cost)
    return replace(passed, cost=cost, timing=replace(timing, parent=None))
