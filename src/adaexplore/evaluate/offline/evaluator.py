"""The evaluator of Triton candidates on a machine without a GPU."""

from __future__ import annotations

from adaexplore.evaluate.judge.local import LocalEvaluator


class OfflineEvaluator(LocalEvaluator):
    """An `Evaluator` that interprets at small sizes and compiles at the real sizes.

    The problem has a `target`. A pass carries an `Estimate` in place of measured times.
    """

    judge_entry = "adaexplore.evaluate.offline.judge:main"
