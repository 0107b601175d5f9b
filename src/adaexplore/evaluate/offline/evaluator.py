"""The evaluator of Triton candidates on a machine without a GPU."""

from __future__ import annotations

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator


class OfflineEvaluator(LocalEvaluator):
    """An `Evaluator` that interprets at small sizes and compiles at the real sizes.

    The problem has a `target`. A pass carries an `Estimate` in place of measured times.
    """

    judge_entry = "adaexplore.evaluate.offline.judge:main"

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:  # noqa: ARG002 - see the base
        """Try nothing: a winner runs at small sizes only, in an interpreter."""
        return ()
