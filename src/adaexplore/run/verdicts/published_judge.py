"""The published judge beside this package's own: a second verdict on every candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adaexplore.core import codec
from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem, Workload
from adaexplore.core.protocols.evaluator import Evaluator, TriesUses
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation, PublishedVerdict
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.sandbox.gpus import alone
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.walls.limits import candidate_limits
from adaexplore.sandbox.watchdog import LimitExceededError

_JUDGE = "adaexplore.evaluate.published:judge"
_MALFORMED = "its process sent a malformed reply"
_SHORTEST_US, _LONGEST_US = 1e-3, 1e12
_TOLD = 400
"""Characters of a reason that are told."""


def published_judge_fits(problem: Problem) -> bool:
    """Return True for a problem in KernelBench's form that is measured on this machine."""
    plain = problem.target is None and not problem.checks.backward
    return plain and problem.workloads == (Workload(),)


def beside_published(
    evaluator: Evaluator, server: ForkServer, problem: Problem, settings: Config
) -> Evaluator:
    """Return the evaluator, with the published judge beside it where the settings ask for it."""
    if not (settings.published_judge and published_judge_fits(problem)):
        return evaluator
    memory_bytes = int(settings.memory_gb * 2**30)
    return WithPublishedJudge(evaluator, server, problem, settings.timeout_s, memory_bytes)


class WithPublishedJudge:
    """An `Evaluator` whose evaluations also have the verdict of the published judge.

    That verdict decides nothing. It is asked for once: a repeated measurement has the first.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        server: ForkServer,
        problem: Problem,
        timeout_s: float,
        memory_bytes: int,
    ) -> None:
        self._evaluator = evaluator
        self._server = server
        self._problem = problem
        self._timeout_s = timeout_s
        self._limits = candidate_limits(memory_bytes, gpu=problem.device != "cpu")
        self._verdicts: dict[str, PublishedVerdict | None] = {}

    def prepare(self) -> ReferenceFacts:
        """See `Evaluator.prepare`."""
        return self._evaluator.prepare()

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """See `Evaluator.evaluate`."""
        evaluation = self._evaluator.evaluate(candidate, parent, again=again)
        if not again and evaluation.status != "infra_error":
            self._verdicts[candidate.digest] = self._verdict(candidate)
        return replace(evaluation, published=self._verdicts.get(candidate.digest))

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """See `TriesUses.try_uses`."""
        inner = self._evaluator
        return inner.try_uses(candidate) if isinstance(inner, TriesUses) else ()

    def close(self) -> None:
        """See `Evaluator.close`."""
        self._evaluator.close()

    def _verdict(self, candidate: Candidate) -> PublishedVerdict | None:
        problem = self._problem
        device, environment = alone(problem.device)
        request = {
            "reference": problem.source,
            "candidate": candidate.source,
            "device": device,
        }
        try:
            with device_lock(problem.device, exclusive=True):
                found = run_job(
                    self._server,
                    _JUDGE,
                    request,
                    self._timeout_s,
                    limits=self._limits,
                    environment=environment,
                    confined="cpu" if device == "cpu" else "gpu",
                    readable=problem.access.readable,
                )
        except TimeoutError:
            return PublishedVerdict(f"not judged after {self._timeout_s:g} s")
        except (WorkerDiedError, LimitExceededError) as error:
            return PublishedVerdict(f"its process ended: {error}")
        return _read(found) if found else None


def _read(found: Mapping[str, Any]) -> PublishedVerdict:
    """Read what the job sends, in whose process the candidate may send anything."""
    try:
        verdict = codec.read(PublishedVerdict, found)
    except codec.MalformedError:
        return PublishedVerdict(_MALFORMED)
    times_us = [time_us for time_us in (verdict.time_us, verdict.eager_us) if time_us is not None]
    if not all(_SHORTEST_US <= time_us < _LONGEST_US for time_us in times_us):
        return PublishedVerdict(_MALFORMED)
    return replace(verdict, why=" ".join(verdict.why.split())[:_TOLD])
