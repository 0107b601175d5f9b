"""Trials of the uses of a correct candidate, in sandboxed processes of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Failed, Fault
from adaexplore.core.verdict.uses import OUTCOMES, Outcome, Use
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.failures import died, overran
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.uses.expected import Expected
from adaexplore.evaluate.judge.uses.process import Found, UseProcess
from adaexplore.evaluate.judge.verdict import DeviceUse
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.sandbox.process import Worker, WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError

_CUDA_FAULT = "CUDA error"  # such as an illegal memory access: nothing works after it
_DETAIL_CHARS = 160
_Result = TypeVar("_Result")
_LOADING = "a fresh process"


@dataclass(frozen=True, slots=True)
class UseTrial:
    """A part of a use; `where` names it in the detail of a use of several parts.

    A part returns None where it does not apply to the problem or the candidate. One that depends on
    sizes (`by_size`) is made on every timed workload, the others on the first one.
    """

    use: str
    run: Callable[[UseProcess], Found | None]
    where: str = ""
    needs_gpu: bool = False
    by_size: bool = False


TRIALS = (
    UseTrial("load_state_dict", lambda p: p.try_other("load_state_dict")),
    UseTrial("copy.deepcopy", lambda p: p.try_own("deepcopy"), by_size=True),
    UseTrial("pickle", lambda p: p.try_own("pickle")),
    UseTrial("torch.save", lambda p: p.try_own("save"), "the module"),
    UseTrial("torch.save", lambda p: p.try_own("state_dict"), "its state dict in another instance"),
    UseTrial("two instances", lambda p: p.try_own("first_of_two"), "the first"),
    UseTrial("two instances", lambda p: p.try_other("second_of_two"), "the second"),
    UseTrial("weights changed in place", lambda p: p.try_other("assigned"), "under no_grad"),
    UseTrial("weights changed in place", lambda p: p.try_other("through_data"), "through .data"),
    UseTrial("inputs of any layout", lambda p: p.try_own("gapped"), "with gaps", by_size=True),
    UseTrial("inputs of any layout", lambda p: p.try_own("transposed"), "transposed", by_size=True),
    UseTrial("built on the CPU, then moved", UseProcess.try_moved, needs_gpu=True),
    UseTrial("another stream", lambda p: p.try_own("stream"), needs_gpu=True, by_size=True),
    UseTrial(
        "gradients", lambda p: p.try_gradients(p.expected.weight_leaves), "of weights", by_size=True
    ),
    UseTrial(
        "gradients", lambda p: p.try_gradients(p.expected.all_leaves), "of inputs", by_size=True
    ),
    UseTrial("other batch sizes", lambda p: p.try_batch(p.expected.larger), "larger", by_size=True),
    UseTrial(
        "other batch sizes", lambda p: p.try_batch(p.expected.smaller), "smaller", by_size=True
    ),
)
"""In the order in which they are made: those that may damage memory come last."""


class UseTrials:
    """The trials of one candidate. `spawn` starts a confined process for it.

    A process that hangs, ends, or has broken its CUDA context is replaced for the trials that
    remain. No trial begins after `deadline`, by `time.monotonic`.
    """

    def __init__(
        self,
        reference: Reference,
        spawn: Callable[[], Worker],
        candidate: Candidate,
        deadline: float,
    ) -> None:
        self._reference = reference
        self._spawn = spawn
        self._candidate = candidate
        self._deadline = deadline
        self._device = reference.problem.device

    def run(self) -> tuple[Use, ...]:
        """Return the outcome of every use that applies."""
        usual = [t for t in TRIALS if not t.needs_gpu or self._device != "cpu"]
        first, *others = self._workloads()
        found: list[tuple[UseTrial, Found]] = []
        lost = self._on(first, list(usual), found)
        for workload in others:
            by_size = [self._named(t, workload) for t in usual if t.by_size]
            lost = lost or self._on(workload, by_size, found)
        return (Use(_LOADING, lost.outcome, lost.detail),) if lost else _by_use(found)

    def _workloads(self) -> list[JudgedWorkload]:
        """The first workload, which candidates are loaded with, and the others that are timed."""
        first, timed = self._reference.first, self._reference.timed
        return [first, *(workload for workload in timed if workload is not first)]

    def _named(self, trial: UseTrial, workload: JudgedWorkload) -> UseTrial:
        where = f"{trial.where}, on {workload.name}" if trial.where else f"on {workload.name}"
        return replace(trial, where=where)

    def _on(
        self,
        workload: JudgedWorkload,
        left: list[UseTrial],
        found: list[tuple[UseTrial, Found]],
    ) -> Found | None:
        """Make trials on a workload; return the outcome of loading where that fails."""
        expected = Expected(self._reference, workload)  # kept no longer: it takes memory
        while left and time.monotonic() < self._deadline:
            worker = self._spawn()
            try:
                begun = self._begun(worker, expected)
                if isinstance(begun, Found):
                    return begun
                self._run_in(begun, left, found)
            finally:
                worker.end()
        return None

    def _begun(self, worker: Worker, expected: Expected) -> UseProcess | Found:
        """Return a process in which the candidate is loaded, or the outcome of loading it."""
        talk = Conversation(worker, self._deadline, self._candidate.source)
        process = UseProcess(self._reference, expected, talk)
        device = DeviceUse(self._device, talk)

        def begin() -> UseProcess:
            process.begin(self._candidate, device)
            return process

        return _outcome(begin, talk)

    def _run_in(
        self, process: UseProcess, left: list[UseTrial], found: list[tuple[UseTrial, Found]]
    ) -> None:
        """Make trials in a process, first to last, until none is left or the process is lost."""
        device = DeviceUse(self._device, process.talk)
        while left and time.monotonic() < self._deadline:
            trial = left.pop(0)
            process.talk.stage = trial.use
            with device.hold(exclusive=False):
                outcome = _outcome(lambda: trial.run(process), process.talk)  # noqa: B023
            if outcome:
                found.append((trial, outcome))
            if outcome and outcome.outcome in ("hangs", "crashes"):
                return


def _outcome(run: Callable[[], _Result], talk: Conversation) -> _Result | Found:
    """Return the result of `run`, or the outcome that an exception stands for."""
    try:
        return run()
    except Stop as stop:
        return _of_verdict(stop.verdict)
    except TimeoutError:
        return Found("hangs", "it does not end")
    except WorkerDiedError as error:
        return Found("crashes", _one_line(died(error, talk.stage).reason))
    except LimitExceededError as error:
        return Found("crashes", _one_line(overran(error, talk.stage).reason))


def _of_verdict(verdict: Failed) -> Found:
    if verdict.status in ("wrong_output", "rejected"):
        return Found("wrong", _one_line(verdict.reason))
    fault = verdict.feedback
    if isinstance(fault, Fault):
        outcome: Outcome = "crashes" if _CUDA_FAULT in fault.message else "refuses"
        return Found(outcome, _one_line(f"{fault.type}: {fault.message}"))
    return Found("refuses", _one_line(verdict.reason))


def _one_line(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _DETAIL_CHARS else line[: _DETAIL_CHARS - 1] + "…"


def _by_use(found: Sequence[tuple[UseTrial, Found]]) -> tuple[Use, ...]:
    """Return one outcome for each use: the worst of its parts."""
    uses: dict[str, Use] = {}
    for trial, each in found:
        detail = f"{trial.where}: {each.detail}" if trial.where and each.detail else each.detail
        use = Use(trial.use, each.outcome, detail)
        worse = uses.setdefault(trial.use, use)
        if OUTCOMES.index(use.outcome) > OUTCOMES.index(worse.outcome):
            uses[trial.use] = use
    return tuple(uses.values())
