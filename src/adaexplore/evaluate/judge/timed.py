"""Timed blocks of a candidate: on inputs it has not seen, with outputs it cannot take back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from statistics import median

import torch

from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.judge.check import Reached, check_outputs
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.timing.audit import IDLE_LATENCY_US, Audit
from adaexplore.evaluate.timing.cpu_time import CpuClocks
from adaexplore.evaluate.timing.foreign_memory import bytes_of, may_read, memory_of
from adaexplore.evaluate.timing.fresh import poison
from adaexplore.evaluate.timing.placement import threads_apart
from adaexplore.evaluate.timing.turnstile.protocol import (
    Left,
    MissedPassageError,
    Passages,
    nothing_used,
)
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.tensors import Layout
from adaexplore.sandbox.cores import measuring
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.user.values import Inputs
from adaexplore.sandbox.watchdog import LimitExceededError

_LATENCY_SPAN_NS = 5_000_000
_LEAVING_S = 1.0
_AT_REST_S = 1.0
_LOOK_EACH_S = 0.02
_BRIEF_BLOCKS = 3
_BRIEF_BLOCK_US = 20_000.0
_MADE_ELSEWHERE = (
    "the outputs of a timed call are not where its process says that it made them: "
    "it works in the judge's memory, or changes outputs after the call"
)
_TOLD_TOO_EARLY = (
    "the sum that its process gave with its notice is not that of the delivered outputs: "
    "the notice came before they were complete, or they were changed after it"
)


class TimedCandidate:
    """A candidate as a party of `measure`, on one workload.

    `reached` is the class that its outputs have reached so far; `layout` is that of its verified
    outputs, in which timed ones are delivered (see `give_slots`).
    """

    def __init__(
        self, talk: Conversation, workload: JudgedWorkload, reached: Reached, layout: Layout
    ) -> None:
        self.reached = reached
        self.pid = talk.pid
        self._talk = talk
        self._workload = workload
        self._places = workload.fresh.places(layout)
        self._device = workload.problem.device
        self._may_place = self._device == "cpu"  # not with threads that a call creates
        self._telling = len(self._places) if self._may_place and may_read(talk.pid) else 0
        self._clocks = _clocks_of(talk)
        self._audit = Audit(talk.pid, self._device, torch.get_num_threads())

    def block(self, count: int) -> list[float]:
        """Time `count` calls and check some of them, chosen before and known to nobody.

        Their outputs are taken before the inputs of the next call are opened.
        """
        workload, fresh, audit = self._workload, self._workload.fresh, self._audit
        audit.idle_until_now()
        with self._placed():
            self._talk.thaw()
            self._talk.ask(wire.Warm(workload.set_numbers))
            self._talk.freeze()
        audit.idle_from_now()
        fresh.refill(count)
        fresh.poison(count)
        self._synchronize()
        chosen = _chosen(count)
        taken: dict[int, list[torch.Tensor]] = {}
        made: dict[int, list[torch.Tensor]] = {}

        def left(i: int, addresses: Sequence[int]) -> None:
            if i not in chosen:
                return
            made[i] = self._made(addresses)
            taken[i] = [ring.copy_of(i) for ring in self._places]
            if made[i]:
                for ring in self._places:
                    poison(ring.tensors[i])  # outputs that were made right here are gone
                made[i] += self._made(addresses)

        audit.idle_until_now()
        start = audit.account()
        created = self._talk.created_tasks
        with self._placed():
            self._talk.thaw()
            times_us, passages = timed_calls(
                self._talk, workload, count, left, self._clocks, telling=self._telling
            )
            self._talk.freeze()
        self._may_place &= self._talk.created_tasks == created
        end = audit.account()
        audit.idle_from_now()
        self._look_at_the_device()
        audit.block(start, end, passages, times_us, workload.baselines.own)
        for i, outputs in taken.items():
            self._prove(i, outputs, passages)
            if not all(map(torch.equal, made[i], 2 * bytes_of(outputs))):
                raise Stop(Failed("rejected", _MADE_ELSEWHERE))
            self._check(i, [out.contiguous() for out in outputs])
        return list(times_us)

    def _made(self, addresses: Sequence[int]) -> list[torch.Tensor]:
        """Return what lies at the addresses of a call's outputs in the candidate's process."""
        pairs = zip(addresses, self._places, strict=False)
        return [memory_of(self.pid, at, place.tensors[0].nbytes) for at, place in pairs]

    def _prove(self, index: int, outputs: Sequence[torch.Tensor], passages: Passages) -> None:
        """Refuse outputs that were not complete when the device gave notice of them."""
        if self._device == "cpu":
            return  # they are taken before the process goes on
        from adaexplore.evaluate.timing.turnstile.sums import sum_of  # only here: it needs Triton

        key = self._workload.fresh.given.key(index)
        if sum_of(outputs, key, torch.device(self._device)) != passages.sums[index]:
            raise Stop(Failed("rejected", _TOLD_TOO_EARLY))

    def _placed(self) -> AbstractContextManager[None]:
        if self._device != "cpu":
            return measuring(self.pid)
        return threads_apart(self.pid) if self._may_place else nullcontext()

    def brief_us(self, about_us: float) -> float:
        """Time a few blocks of calls of about that length; return the least of their medians.

        What a block leaves open is part of its time.
        """
        count = max(min(int(_BRIEF_BLOCK_US / about_us), self._workload.fresh.count), 1)
        return min(
            median(self.block(count)) + max(self.open_us(), 0.0) for _ in range(_BRIEF_BLOCKS)
        )

    def open_us(self) -> float:
        """Return what the times of the last block leave open in a call (see `Audit`)."""
        return self._audit.open_us()

    def objection(self) -> str | None:
        """Return the objection to the reported times, None if they are believed."""
        self._audit.idle_until_now()
        self._talk.thaw()
        return self._audit.objection()

    def resume(self) -> None:
        """Let the candidate's process go on after its last block."""
        self._talk.thaw()

    def _check(self, index: int, outputs: list[torch.Tensor]) -> None:
        """Compare the outputs of a timed call; closely only where a glance does not decide."""
        original = self._workload.fresh.original(index)
        if original is None:
            raise Stop(Failed("wrong_output", "forward() changes its inputs in place"))
        self._compare(original, outputs)

    def _compare(self, inputs: Inputs, outputs: Sequence[torch.Tensor]) -> None:
        workload = self._workload
        if workload.is_near(inputs, outputs, self.reached.precision):
            return
        truths = workload.truths.of(inputs)
        found = check_outputs(workload, outputs, truths, "fresh inputs, while being timed")
        self.reached = self.reached.or_worse(found)

    def _look_at_the_device(self) -> None:
        if self._device != "cpu":
            self._audit.latency(_latency_us(self._device))

    def _synchronize(self) -> None:
        if self._device != "cpu":
            torch.cuda.synchronize()


def timed_calls(
    talk: Conversation,
    workload: JudgedWorkload,
    count: int,
    left: Left | None = None,
    clocks: CpuClocks | None = None,
    *,
    telling: int = 0,
) -> tuple[Sequence[float], Passages]:
    """Have the first `count` slots of a workload timed, each opened when its call may begin.

    Raises as `Conversation.ask` does, and `Stop` where the process does not pass its turnstile.
    """
    try:
        given = workload.fresh.given
        used = clocks.read_us if clocks and given.open_slowly else nothing_used
        with talk.turnstile.attended(
            count,
            given.open,
            left,
            used,
            asking=talk.pid,
            telling=telling,
            head_start_s=workload.baselines.own.head_start_s,
        ) as passages:
            reply = talk.ask(wire.Time(workload.first_slot, count, telling > 0))
    except MissedPassageError:
        reason = "its process has not asked for the inputs of every timed call"
        raise Stop(Failed("rejected", reason)) from None
    return reply.times_us, passages


def _chosen(count: int) -> set[int]:
    """Draw the calls of a block to compare: one, and each with a chance of one in `count`.

    A process sees by a late answer that a call was compared. Another may always follow.
    """
    return {secrets.randbelow(count)} | {i for i in range(count) if not secrets.randbelow(count)}


def _clocks_of(talk: Conversation) -> CpuClocks:
    return CpuClocks(talk.pid, lambda: talk.created_tasks)


def _latency_us(device: str) -> float:
    """Return the longest time of a trivial kernel, tried for some milliseconds.

    A running kernel of another process takes turns with it, a time slice each.
    """
    tiny = torch.zeros(1, device=device)
    torch.cuda.synchronize(device)
    longest, began = 0, time.perf_counter_ns()
    while (since := time.perf_counter_ns()) < began + _LATENCY_SPAN_NS:
        tiny.add_(1)
        torch.cuda.synchronize(device)
        longest = max(longest, time.perf_counter_ns() - since)
    return longest / 1000.0


def is_busy(device: str) -> bool:
    """Return whether a GPU has work of processes that do not take the device's lock.

    Tried for a second: the kernels of an ended process take a moment to leave the GPU.
    """
    deadline = time.monotonic() + _LEAVING_S
    while time.monotonic() < deadline:
        if _latency_us(device) < IDLE_LATENCY_US:
            return False
    return True


def comes_to_rest(device: str) -> bool:
    """Return whether a GPU becomes idle and stays so for a second: work of others comes and goes.

    What it tells holds for the time while a candidate was there, whose process has ended.
    """
    if is_busy(device):
        return False
    deadline = time.monotonic() + _AT_REST_S
    while time.monotonic() < deadline:
        if _latency_us(device) >= IDLE_LATENCY_US:
            return False
        time.sleep(_LOOK_EACH_S)
    return True


class ParentLostError(Exception):
    """The parent can no longer be timed, through no fault of the candidate's."""


class TimedParent:
    """A candidate that passed before, timed beside one that was made from it."""

    def __init__(self, talk: Conversation, workload: JudgedWorkload) -> None:
        self._talk = talk
        self._workload = workload
        self._clocks = _clocks_of(talk)

    def block(self, count: int) -> list[float]:
        """Time `count` calls on fresh inputs; raises `ParentLostError`."""
        workload = self._workload
        try:
            with measuring(self._talk.pid):
                self._talk.thaw()
                self._talk.ask(wire.Warm(workload.set_numbers))
                workload.fresh.refill(count)
                times_us, _ = timed_calls(self._talk, workload, count, None, self._clocks)
                self.end()
        except (Stop, TimeoutError, WorkerDiedError, LimitExceededError) as error:
            raise ParentLostError from error
        return list(times_us)

    def end(self) -> None:
        """Stop the parent's process again."""
        self._talk.freeze()
