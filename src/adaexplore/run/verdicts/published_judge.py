"""The published judge beside this package's own: a second verdict on every candidate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
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
from adaexplore.sandbox.lock import device_lock, make_way
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.walls.limits import candidate_limits
from adaexplore.sandbox.watchdog import LimitExceededError

_JUDGE = "adaexplore.evaluate.published:serve"
_ALONE = (None, True, False, True, False)
"""Whether the judge has the device alone, in the two timings; None before it needs a GPU."""
_ENDS_S = 0.05
"""What a stopped process launched on a device has ended after so long."""
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
        """Judge beside others; again with the device alone where its memory did not suffice."""
        try:
            found = self._judged(candidate)
            if "out_of_memory" in found:
                with device_lock(self._problem.device, exclusive=True):
                    found = self._judged(candidate)
        except TimeoutError:
            return PublishedVerdict(f"not judged after {self._timeout_s:g} s")
        except (WorkerDiedError, LimitExceededError) as error:
            return PublishedVerdict(f"its process ended: {error}")
        return _read(found) if found and "out_of_memory" not in found else None

    def _judged(self, candidate: Candidate) -> dict[str, Any]:
        """Return the last message of the judge's process, whose time runs while it works."""
        problem, left_s = self._problem, self._timeout_s
        device, environment = alone(problem.device)
        message: dict[str, Any] = {
            "reference": problem.source,
            "candidate": candidate.source,
            "device": device,
        }
        worker = self._server.spawn(
            _JUDGE,
            name="published",
            limits=self._limits,
            environment=environment,
            confined="cpu" if device == "cpu" else "gpu",
            readable=problem.access.readable,
        )

        def let_others_time() -> float:
            nonlocal left_s
            took_s = make_way(problem.device, worker, _comes_to_rest)
            left_s += took_s
            return took_s

        try:
            for exclusive in _ALONE:
                with self._lock(exclusive):
                    began = time.monotonic()
                    found = worker.call(message, left_s, make_way=let_others_time)
                    left_s = max(left_s - (time.monotonic() - began), 0.0)
                if found.keys() != {"alone"}:
                    break
                message = {}
            return found
        finally:
            worker.end()

    def _lock(self, exclusive: bool | None) -> AbstractContextManager[None]:
        device = self._problem.device
        if exclusive is None and device != "cpu":
            return nullcontext()
        return device_lock(device, exclusive=bool(exclusive))


def _comes_to_rest() -> bool:
    time.sleep(_ENDS_S)
    return True


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
