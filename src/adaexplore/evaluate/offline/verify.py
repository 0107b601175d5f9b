"""A candidate on one small variant of its problem: interpreted, and compared with the truth."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Estimate, Evaluation, Failed, Passed
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.verdict import CandidateRun, decided
from adaexplore.evaluate.offline.shrink import Variant
from adaexplore.evaluate.offline.sizes import follow
from adaexplore.evaluate.wire.tensors import share
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.limits import candidate_limits
from adaexplore.sandbox.process import ForkServer

WORKER = "adaexplore.evaluate.offline.worker:main"
_LAUNCH_SHARE = 0.25  # of the time for an evaluation
_VERIFY_SHARE = 0.25
_LEAST_SETS = 2
FEW_INPUTS = "verified-on-few-inputs"


@dataclass(frozen=True, slots=True)
class Limit:
    """The wall time an evaluation has: how much, and until when by `time.monotonic`."""

    timeout_s: float
    deadline: float

    @staticmethod
    def of(timeout_s: float) -> Limit:
        """From now on."""
        return Limit(timeout_s, time.monotonic() + timeout_s)


class SmallBench:
    """Judges candidates on one variant of a problem: on all input sets if `thorough`, else on two.

    Raises `BadProblemError` where the variant cannot be verified against.
    """

    def __init__(
        self,
        problem: Problem,
        variant: Variant,
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
        self._buffers = [share(t.contiguous()) for _, t in self.reference.outputs]

    def evaluate(self, candidate: Candidate, limit: Limit, estimate: Estimate) -> Evaluation:
        """The verdict on these sizes; a pass carries the estimate for the real ones."""
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
        run = _InterpretedRun(
            self.reference,
            self._buffers,
            replace(candidate, source=source),
            talk,
            limit=limit,
            estimate=estimate,
            thorough=self._thorough,
        )
        try:
            verdict: Evaluation = decided(run.verdict, talk, limit.timeout_s)
        finally:
            worker.end()
        if self.reference.mend_inputs() and verdict.status in ("passed", "wrong_output"):
            return Failed("wrong_output", "forward() changes its inputs in place")
        return verdict


class _InterpretedRun(CandidateRun):
    """The usual steps, up to where time would be measured."""

    def __init__(self, *arguments: Any, limit: Limit, estimate: Estimate, thorough: bool) -> None:
        super().__init__(*arguments)
        self._thorough = thorough
        self._limit = limit
        self._estimate = estimate

    def verdict(self) -> Passed:
        """Passed, or an exception as from `CandidateRun.verdict`."""
        target = self._reference.problem.target
        begin = {"op": "begin", "target": target, "device": "cpu"}
        self._talk.ask(begin | {"launch_s": self._limit.timeout_s * _LAUNCH_SHARE})
        self._load()
        self._verify()
        self._inspect()
        return Passed(self._taken, self._error, self._estimate, labels=tuple(self._labels))

    def _give_slots(self) -> None:
        pass  # nothing is timed

    def _verify(self) -> None:
        """On as many sets as there is time for: the problem's own and another at least."""
        enough = time.monotonic() + self._limit.timeout_s * _VERIFY_SHARE
        count = len(self._reference.sets) if self._thorough else _LEAST_SETS
        for index in range(min(count, len(self._reference.sets))):
            if index >= _LEAST_SETS and time.monotonic() > enough:
                self._labels.append(FEW_INPUTS)
                return
            self._verify_set(index)
        if self._thorough:
            self._verify_other_weights()
