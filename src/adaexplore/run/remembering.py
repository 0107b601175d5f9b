"""An evaluator that takes over what other runs have found about the same candidate."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.evaluation import Cost, Evaluation, Failed
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.evaluator import Evaluator, TriesUses
from adaexplore.core.uses import Use
from adaexplore.core.version import __version__
from adaexplore.run.evaluation_cache import taken_over
from adaexplore.store.evaluations import SharedEvaluation, SharedEvaluations

_LASTING = frozenset({"compile_error", "runtime_error", "wrong_output", "rejected", "not_run"})
"""Failures that another try repeats. A timeout and a lack of memory depend on who works beside."""

_OF_THE_PLACE = ("device", "system", "isolation", "cores", "threads", "cpu")
"""Fields of an environment that decide no verdict on a GPU: its number, and the host's."""


class RememberingEvaluator:
    """Looks for a candidate's evaluation before `evaluator` makes one, and keeps what lasts.

    A winner's confirmation (`again`) is always measured. `decides` is what decides an evaluation
    beside the candidate (see `deciding`).
    """

    def __init__(
        self, evaluator: Evaluator, shared: SharedEvaluations, decides: str, machine: str
    ) -> None:
        self._evaluator = evaluator
        self._shared = shared
        self._decides = decides
        self._machine = machine

    def prepare(self) -> ReferenceFacts:
        """See `Evaluator.prepare`."""
        return self._evaluator.prepare()

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """See `Evaluator.evaluate`; an evaluation that is taken over says so in its `detail`."""
        if again:
            return self._evaluator.evaluate(candidate, parent, again=True)
        key = hashlib.sha256(f"{self._decides}\0{candidate.digest}".encode()).hexdigest()
        if found := self._shared.find(key):
            return _said(found)
        evaluation = self._evaluator.evaluate(candidate, parent)
        if lasts(evaluation):
            self._shared.add(key, evaluation, self._machine)
        return evaluation

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """See `TriesUses.try_uses`."""
        inner = self._evaluator
        return inner.try_uses(candidate) if isinstance(inner, TriesUses) else ()

    def close(self) -> None:
        """See `Evaluator.close`."""
        self._evaluator.close()
        self._shared.close()


def remembering(
    evaluator: Evaluator, problem: Problem, settings: Config, environment: Environment
) -> Evaluator:
    """Return an evaluator that shares its evaluations as the settings say.

    Raises `BadInputError` for a place that cannot be used.
    """
    if not settings.evaluation_cache:
        return evaluator
    shared = SharedEvaluations(settings.evaluation_cache)
    machine = f"{environment.gpu or environment.cpu}, PyTorch {environment.torch}"
    return RememberingEvaluator(
        evaluator, shared, deciding(problem, settings, environment), machine
    )


def deciding(problem: Problem, settings: Config, environment: Environment) -> str:
    """Return what decides a candidate's evaluation, as text: any change of it is another key.

    On a GPU the host does not count, on the CPU it does. The commit of this package counts, because
    a judge that was mended judges otherwise.
    """
    versions = environment.to_json()
    if problem.device != "cpu":
        versions = {name: v for name, v in versions.items() if name not in _OF_THE_PLACE}
    kind = problem.device.partition(":")[0]
    limits = [settings.timeout_s, settings.memory_gb, problem.checks.allow_waiting]
    return json.dumps([problem.digest, kind, limits, __version__, versions], sort_keys=True)


def lasts(evaluation: Evaluation) -> bool:
    """Return whether an evaluation says something about the candidate, on a quiet machine."""
    if isinstance(evaluation, Failed):
        return evaluation.status in _LASTING
    timing = evaluation.measured
    return timing is None or not timing.is_noisy


def _said(found: SharedEvaluation) -> Evaluation:
    when = datetime.fromtimestamp(found.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    said = f"taken over from an evaluation of {when} on {found.machine}"
    evaluation = found.evaluation
    if not isinstance(evaluation, Failed):
        evaluation = taken_over(evaluation, Cost())
    detail = f"{evaluation.detail}\n{said}" if evaluation.detail else said
    return replace(evaluation, detail=detail, cost=Cost())
