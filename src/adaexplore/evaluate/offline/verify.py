"""Verification of a candidate on one small variant of its problem, by interpretation."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Estimate, Evaluation, Failed, Passed, WorkloadTiming
from adaexplore.core.verdict.labels import CONSTANT_WEIGHTS
from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.diagnosis.profile import is_decoy
from adaexplore.evaluate.judge.load import first_call, inspect, load
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.verdict import decided
from adaexplore.evaluate.judge.verify import compare, compare_first, verify_other_weights
from adaexplore.evaluate.offline.compiled import Compiled
from adaexplore.evaluate.offline.reference_sizes import SizeVariant
from adaexplore.evaluate.offline.sizes import follow
from adaexplore.evaluate.wire import offline_messages as wire
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.walls.limits import candidate_limits
from adaexplore.sandbox.watchdog import LimitExceededError

WORKER = "adaexplore.evaluate.offline.worker:main"
_LAUNCH_SHARE = 0.25  # of the time for an evaluation
_VERIFY_SHARE = 0.25
_MIN_SETS = 2
FEW_INPUTS = "verified-on-few-inputs"


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit on an evaluation's wall time: its length, and its deadline by `time.monotonic`."""

    timeout_s: float
    deadline: float

    @staticmethod
    def of(timeout_s: float) -> Limit:
        """Return a limit that begins now."""
        return Limit(timeout_s, time.monotonic() + timeout_s)


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimate of a candidate, and of each workload if there are several."""

    estimate: Estimate
    workloads: tuple[WorkloadTiming, ...] = ()

    @staticmethod
    def of(compiled: Compiled) -> Estimates:
        """Return the estimates of a compiled candidate."""
        several = compiled.estimates if len(compiled.estimates) > 1 else {}
        return Estimates(compiled.estimate, tuple(WorkloadTiming(n, e) for n, e in several.items()))


class SmallBench:
    """The judge of candidates on one variant of a problem: all input sets if `thorough`, else two.

    Raises `BadProblemError` if the variant's outputs cannot verify a candidate.
    """

    def __init__(
        self,
        problem: Problem,
        variant: SizeVariant,
        server: ForkServer,
        folder: Path,
        memory_bytes: int,
        *,
        thorough: bool,
    ) -> None:
        self.variant = variant
        self._thorough = thorough
        self.reference = Reference(replace(problem, source=variant.source), folder)
        self._server = server
        self._limits = candidate_limits(memory_bytes, gpu=False)

    def evaluate(self, candidate: Candidate, limit: Limit, compiled: Estimates) -> Evaluation:
        """Return the verdict at these sizes; a pass carries the estimates for the real sizes."""
        source = follow(candidate.source, self.variant.replaced)
        worker = self._server.spawn(
            WORKER,
            name="candidate",
            limits=self._limits,
            environment=DIALECTS[candidate.language].environment,
            confined="cpu",
            readable=self.reference.problem.access.readable,
        )
        talk = Conversation(worker, limit.deadline, source)
        interpreted = replace(candidate, source=source)
        try:
            verdict: Evaluation = decided(
                lambda: self._verdict(talk, interpreted, limit, compiled), talk, limit.timeout_s
            )
        finally:
            worker.end()
        if self.reference.mend_inputs() and verdict.status in ("passed", "wrong_output"):
            return Failed("wrong_output", "forward() changes its inputs in place")
        return verdict

    def _verdict(
        self, talk: Conversation, candidate: Candidate, limit: Limit, compiled: Estimates
    ) -> Passed:
        """Load and verify; raises the exceptions of `verdict.evaluate_candidate`."""
        target = self.reference.problem.target
        assert target is not None
        talk.ask(wire.Begin(target, "cpu", limit.timeout_s * _LAUNCH_SHARE))
        labels = load(talk, self.reference, candidate)
        inspect(talk)
        first_call(talk)
        reached, few = self._verify(talk, limit)
        inspect(talk)
        decoy = ("decoy",) if self._thorough and self._is_decoy(talk) else ()
        return Passed(
            reached.precision,
            reached.error,
            compiled.estimate,
            absolute_error=reached.absolute,
            labels=(*labels, *few, *decoy),
            workloads=compiled.workloads,
        )

    def _is_decoy(self, talk: Conversation) -> bool:
        """Return whether results are right without the kernels; no, where that cannot be tried."""
        try:
            return is_decoy(talk, self.reference.first)
        except (Stop, TimeoutError, WorkerDiedError, LimitExceededError):
            return False  # the verdict stands without it

    def _verify(self, talk: Conversation, limit: Limit) -> tuple[Reached, tuple[str, ...]]:
        """Compare on at least two sets of each workload, and on more while time allows."""
        enough = time.monotonic() + limit.timeout_s * _VERIFY_SHARE
        reached, needs_weights, few = Reached(), False, False
        for workload in self.reference.workloads:
            count = len(workload.sets) if self._thorough else _MIN_SETS
            for index in range(min(count, len(workload.sets))):
                if index >= _MIN_SETS and time.monotonic() > enough:
                    few = True
                    break
                if workload.first_set + index == 0:
                    compared, needs_weights = compare_first(talk, self.reference)
                else:
                    compared = compare(talk, workload, index)
                reached = reached.or_worse(compared.reached)
        if few:
            return reached, (FEW_INPUTS,)
        if self._thorough:
            other, follows = verify_other_weights(talk, self.reference, needs_weights=needs_weights)
            fixed = self.reference.first.truths.moved_constants and follows is None
            return reached.or_worse(other), (CONSTANT_WEIGHTS,) if fixed else ()
        return reached, ()
