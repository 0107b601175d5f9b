"""The evaluation of candidates of one reference: their processes, live parents, second tries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Cost, Evaluation, Failed, Passed, Timing
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.failures import out_of_room
from adaexplore.evaluate.judge.live_parents import LiveParents
from adaexplore.evaluate.judge.measure import workload_timings
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.uses.trials import UseTrials
from adaexplore.evaluate.judge.verdict import DeviceUse, decided, evaluate_candidate
from adaexplore.evaluate.timing.combine import combined
from adaexplore.evaluate.timing.measure import discounted
from adaexplore.evaluate.truth.device_memory.room import release_memory, room_on, wait_for_room
from adaexplore.evaluate.wire import messages as wire
from adaexplore.languages import DIALECTS
from adaexplore.languages.cuda.toolkit import building_for
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.process import ForkServer, Worker
from adaexplore.sandbox.user.user_code import causes, is_out_of_memory
from adaexplore.sandbox.walls.limits import candidate_limits

WORKER = "adaexplore.evaluate.candidate.worker:main"
USES_WORKER = "adaexplore.evaluate.candidate.uses:main"
_NO_ROOM = "beside it, and beside what else is there, the judge has too little memory"
_PATIENCE_S = 60.0


class CandidateBench:
    """Evaluates candidates of one reference, one at a time."""

    def __init__(self, reference: Reference, server: ForkServer, memory_bytes: int) -> None:
        self._reference = reference
        self._server = server
        self._on_cpu = on_cpu = reference.problem.device == "cpu"
        self._confined: Literal["cpu", "gpu"] = "cpu" if on_cpu else "gpu"
        self._limits = candidate_limits(memory_bytes, gpu=not on_cpu)
        self._environment = {} if on_cpu else _environment(reference.problem)
        self._parents = LiveParents(reference.problem.device)
        self._best_us: dict[str, float] = {}  # by workload
        self._measured: dict[str, tuple[Candidate, Passed]] = {}  # by their code, the first of each

    def evaluate(
        self,
        candidate: Candidate,
        timeout_s: float,
        parent: Candidate | None = None,
        *,
        again: bool = False,
    ) -> Evaluation:
        """Return the verdict on one candidate, within `timeout_s` seconds of wall time.

        With `parent`, a candidate that passed not long ago, both are timed side by side. A
        candidate that compiles to the same code as an earlier one is not timed, unless `again`;
        then it is timed beside every baseline.
        """
        if again:
            self._complete_baselines()
        started = time.monotonic()
        costs: list[Cost] = []

        def evaluated(beside: Candidate | None) -> Evaluation:
            verdict = self._evaluate(candidate, timeout_s, beside, again)
            costs.append(verdict.cost)
            return verdict

        for last_try in (False, True):
            verdict = evaluated(parent)
            if verdict.status == "infra_error" and self._parents.clear():  # they may keep it busy
                verdict = evaluated(None)
            if verdict.status == "out_of_memory" and (self._parents.clear() or not self._on_cpu):
                self._wait_for_room()
                with device_lock(self._reference.problem.device, exclusive=True):  # nobody beside
                    verdict = self._within_room(evaluated(None))
            if not self._slowed(verdict):
                break
            if last_try:
                verdict = self._discounted(verdict)
        if isinstance(verdict, Passed) and verdict.descriptor and verdict.descriptor.code:
            self._measured.setdefault(verdict.descriptor.code, (candidate, verdict))
        cost = replace(Cost.total(costs), wall_s=time.monotonic() - started)
        return replace(verdict, cost=cost)

    def try_uses(self, candidate: Candidate, timeout_s: float) -> tuple[Use, ...]:
        """Try a correct candidate as users use a module, within about `timeout_s` seconds."""
        trials = UseTrials(
            self._reference,
            self._spawn,
            candidate,
            time.monotonic() + timeout_s,
        )
        try:
            return trials.run()
        finally:
            with device_lock(self._reference.problem.device, exclusive=False):
                self._reference.mend_inputs()

    def _complete_baselines(self) -> None:
        """Build and time the baselines that the search did without."""
        reference = self._reference
        device = reference.problem.device
        with device_lock(device, exclusive=False):
            grown = reference.complete_baselines()
        if grown:
            with device_lock(device, exclusive=True):
                reference.time_baselines()

    def _spawn(self, entry: str = USES_WORKER) -> Worker:
        return self._server.spawn(
            entry,
            name="candidate",
            limits=self._limits,
            environment=self._environment,
            confined=self._confined,
            readable=self._reference.problem.access.readable,
        )

    def _of_others(self, candidate: Candidate) -> dict[str, Passed]:
        """Return the results of other candidates by their code: the same one is measured again."""
        return {
            code: passed for code, (other, passed) in self._measured.items() if other != candidate
        }

    def _evaluate(
        self, candidate: Candidate, timeout_s: float, parent: Candidate | None, again: bool
    ) -> Evaluation:
        """Return the verdict, with what it cost but for its wall time."""
        reference = self._reference
        worker = self._spawn(WORKER)
        talk = Conversation(worker, time.monotonic() + timeout_s, candidate.source)
        device = DeviceUse(reference.problem.device, talk)

        def run() -> Passed:
            return evaluate_candidate(
                talk,
                reference,
                candidate,
                device,
                parent=self._parents.find(parent, talk.deadline),
                best_us=self._best_us,
                measured={} if again else self._of_others(candidate),
                every_baseline=again,
            )

        passed = False
        try:
            verdict: Evaluation = decided(run, talk, timeout_s)
            passed = isinstance(verdict, Passed) and not isinstance(
                decided(lambda: talk.ask(wire.Rest()), talk, timeout_s), Failed
            )
            talk.freeze()
        except (RuntimeError, MemoryError, BadProblemError) as error:
            if not any(map(is_out_of_memory, causes(error))):
                raise
            verdict = Failed("out_of_memory", _NO_ROOM)
        finally:
            if not passed:
                worker.end()
        with device_lock(reference.problem.device, exclusive=False):
            changed = reference.mend_inputs()
        if changed and verdict.status in ("passed", "wrong_output"):
            verdict = Failed("wrong_output", "forward() changes its inputs in place")
        if passed:
            self._parents.add(candidate, worker, talk)
        for name, timing in self._timings(verdict).items():
            self._best_us[name] = min(self._best_us.get(name, timing.time_us), timing.time_us)
        return replace(verdict, cost=Cost(device_s=device.held_s, took_s=talk.took_s))

    def _within_room(self, verdict: Evaluation) -> Evaluation:
        """Return the verdict, but where others left a candidate too little memory."""
        if self._on_cpu or not isinstance(verdict, Failed) or verdict.status != "out_of_memory":
            return verdict
        release_memory()
        return out_of_room(verdict, room_on(self._reference.problem.device))

    def _wait_for_room(self) -> None:
        """Wait until others give a GPU's memory back: as much as the judge took at most."""
        device = self._reference.problem.device
        if self._on_cpu:
            return
        release_memory()
        took = torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(device)
        wait_for_room(took, partial(room_on, device), _PATIENCE_S)

    def _timings(self, verdict: Evaluation) -> Mapping[str, Timing]:
        """Return the measured timings of a verdict by workload."""
        if not isinstance(verdict, Passed) or verdict.measured is None:
            return {}
        if not verdict.workloads:
            return {self._reference.timed[0].name: verdict.measured}
        return {w.name: w.timing for w in verdict.workloads if isinstance(w.timing, Timing)}

    def _discounted(self, verdict: Evaluation) -> Evaluation:
        assert isinstance(verdict, Passed)
        quiet_us = {w.name: w.baselines_us for w in self._reference.timed}
        timings = {
            name: discounted(timing, quiet_us[name])
            for name, timing in self._timings(verdict).items()
        }
        rooflines = {w.name: w.roofline for w in verdict.workloads if w.roofline}
        return replace(
            verdict,
            timing=combined(list(timings.values())),
            workloads=workload_timings(timings, rooflines),
            labels=(*verdict.labels, "baselines-disturbed"),
        )

    def _slowed(self, verdict: Evaluation) -> bool:
        """Return whether the baselines were slow beside a candidate and are fast without it."""
        timings = self._timings(verdict)
        if not timings:
            return False
        beside_us = {name: timing.baselines_us for name, timing in timings.items()}
        if not self._reference.are_slower(beside_us):
            return False
        with device_lock(self._reference.problem.device, exclusive=True):
            return not self._reference.are_still_slower(beside_us)


def _environment(problem: Problem) -> dict[str, str]:
    """Return the environment that a candidate's process on a GPU gets in addition."""
    building = building_for(torch.cuda.get_device_capability(problem.device))
    return {**DIALECTS[problem.language].environment, **building}
