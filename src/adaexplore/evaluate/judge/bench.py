"""The bench that a run's candidates are judged on: their processes, their parents, a second try."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Literal

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Cost, Evaluation, Failed, Passed
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.live_parents import KeptCandidates
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.verdict import CandidateRun, decided
from adaexplore.evaluate.kernels.toolkit import building_for
from adaexplore.evaluate.timing.measure import discounted
from adaexplore.evaluate.wire.tensors import share
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.device_lock import device_lock
from adaexplore.sandbox.limits import candidate_limits
from adaexplore.sandbox.process import ForkServer

WORKER = "adaexplore.evaluate.judge.worker:main"


class Bench:
    """Evaluates candidates of one reference, one at a time."""

    def __init__(self, reference: Reference, server: ForkServer, memory_bytes: int) -> None:
        self._reference = reference
        self._server = server
        self._on_cpu = on_cpu = reference.problem.device == "cpu"
        self._confined: Literal["cpu", "gpu"] = "cpu" if on_cpu else "gpu"
        self._limits = candidate_limits(memory_bytes, gpu=not on_cpu)
        self._environment = {} if on_cpu else _environment(reference.problem)
        self._buffers = [share(t.contiguous()) for _, t in reference.outputs]
        self._kept = KeptCandidates(reference.problem.device)
        self._best_us = math.inf
        self._measured: dict[str, tuple[Candidate, Passed]] = {}  # by their code, the first of each

    def evaluate(
        self,
        candidate: Candidate,
        timeout_s: float,
        parent: Candidate | None = None,
        *,
        again: bool = False,
    ) -> Evaluation:
        """The verdict on one candidate, within `timeout_s` seconds of wall time.

        With `parent`, a candidate that passed not long ago, it is timed beside that one too. One
        that compiles to what another did is not timed, unless `again`.
        """
        started, device_s = time.monotonic(), 0.0
        for last_try in (False, True):
            verdict, held_s = self._evaluate(candidate, timeout_s, parent, again)
            if verdict.status == "out_of_memory" and (self._kept.clear() or not self._on_cpu):
                with device_lock(self._reference.problem.device, exclusive=True):  # nobody beside
                    verdict, held_s = self._evaluate(candidate, timeout_s, None, again)
            device_s += held_s
            if not self._slowed(verdict):
                break
            if last_try:
                verdict = self._discounted(verdict)
        if isinstance(verdict, Passed) and verdict.descriptor and verdict.descriptor.code:
            self._measured.setdefault(verdict.descriptor.code, (candidate, verdict))
        cost = Cost(wall_s=time.monotonic() - started, device_s=device_s)
        return replace(verdict, cost=cost)

    def _of_others(self, candidate: Candidate) -> dict[str, Passed]:
        """The results of other candidates by their code: asked again, one is measured again."""
        return {
            code: passed for code, (other, passed) in self._measured.items() if other != candidate
        }

    def _evaluate(
        self, candidate: Candidate, timeout_s: float, parent: Candidate | None, again: bool
    ) -> tuple[Evaluation, float]:
        worker = self._server.spawn(
            WORKER,
            name="candidate",
            limits=self._limits,
            environment=self._environment,
            confined=self._confined,
            readable=self._reference.problem.access.readable,
        )
        talk = Conversation(worker, time.monotonic() + timeout_s, candidate.source)
        measured = {} if again else self._of_others(candidate)
        run = CandidateRun(self._reference, self._buffers, candidate, talk, self._best_us, measured)
        run.parent = self._kept.talk_to(parent, talk.deadline)
        passed = False
        try:
            verdict: Evaluation = decided(run.verdict, talk, timeout_s)
            passed = isinstance(verdict, Passed) and not isinstance(
                decided(lambda: talk.ask({"op": "rest"}), talk, timeout_s), Failed
            )
            talk.freeze()
        finally:
            if not passed:
                worker.end()
        with device_lock(self._reference.problem.device, exclusive=False):
            changed = self._reference.mend_inputs()
        if changed and verdict.status in ("passed", "wrong_output"):
            verdict = Failed("wrong_output", "forward() changes its inputs in place")
        if passed:
            self._kept.keep(candidate, worker, talk)
        if parent is not None and run.parent_lost:
            self._kept.drop(parent)
        if isinstance(verdict, Passed) and verdict.measured:
            self._best_us = min(self._best_us, verdict.measured.time_us)
        return verdict, run.device_s

    def _discounted(self, verdict: Evaluation) -> Evaluation:
        assert isinstance(verdict, Passed)
        assert verdict.measured
        timing = discounted(verdict.measured, self._reference.baselines.times_us)
        return replace(verdict, timing=timing, labels=(*verdict.labels, "baselines-disturbed"))

    def _slowed(self, verdict: Evaluation) -> bool:
        """Whether the baselines were slow beside a candidate and are fast without it."""
        timing = verdict.measured if isinstance(verdict, Passed) else None
        if timing is None:
            return False
        with device_lock(self._reference.problem.device, exclusive=True):
            return self._reference.baselines_slowed(timing.baselines_us)


def _environment(problem: Problem) -> dict[str, str]:
    """What a candidate's process on a GPU gets beside the usual."""
    building = building_for(torch.cuda.get_device_capability(problem.device))
    return {**DIALECTS[problem.language].environment, **building}
