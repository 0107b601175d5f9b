"""The evaluator of Triton candidates on a machine without a GPU."""

from __future__ import annotations

from adaexplore.evaluate.judge.local import LocalEvaluator


class OfflineEvaluator(LocalEvaluator):
    """Interprets on small sizes and compiles at the real ones; see `base.Evaluator`.

    The problem has a `target`. What passes carries an `Estimate` in place of measured times.
    """

    judge_entry = "adaexplore.evaluate.offline.judge:main"
