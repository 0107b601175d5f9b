"""Candidate -> Evaluation: compile, verify against float64, measure against the baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.evaluate.judge.evaluators.local import EXAMINE_JOB as EXAMINE_JOB
    from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator as LocalEvaluator
    from adaexplore.evaluate.judge.evaluators.recorded import RecordedEvaluator as RecordedEvaluator
    from adaexplore.evaluate.judge.evaluators.recorded import (
        UnseenCandidateError as UnseenCandidateError,
    )
    from adaexplore.evaluate.judge.trials import try_baselines as try_baselines
    from adaexplore.evaluate.offline.counted import counted_facts as counted_facts
    from adaexplore.evaluate.offline.evaluator import OfflineEvaluator as OfflineEvaluator
    from adaexplore.evaluate.timing.baselines.offered import OFFERED as OFFERED
    from adaexplore.evaluate.timing.baselines.trial import BaselineTrial as BaselineTrial
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
