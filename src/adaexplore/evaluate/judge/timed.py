"""Timed blocks of a candidate: on inputs it has not seen, with outputs it cannot take back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

import torch

from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.timing.audit import IDLE_LATENCY_US, Audit
from adaexplore.evaluate.timing.fresh import FreshInputs
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError

_LATENCY_SPAN_NS = 5_000_000
_LEAVING_S = 1.0

Check = Callable[[int, list[torch.Tensor]], None]
"""Compares the outputs of the call on a slot with the truth; raises `Stop` where they are wrong."""


class TimedCandidate:
    """A candidate as a party of `measure`.

    `delivery_us` is how much longer handing over its outputs takes than the reference's.
    """

    def __init__(
        self, talk: Conversation, reference: Reference, check: Check, delivery_us: float
    ) -> None:
        self._talk = talk
        self._reference = reference
        self._check = check
        self._delivery_us = delivery_us
        self._was_idle = False
        self._is_first = True
        self._audit = Audit(talk.pid, reference.problem.device, torch.get_num_threads())

    def block(self, count: int) -> list[float]:
        """Times `count` calls and checks one of them, chosen when all were done.

        The first block says how many calls fill the next ones: it gives the times as they were
        told, for the fewer calls a block has, the more each of them could hide.
        """
        fresh, audit = self._reference.fresh, self._audit
        audit.idle_until_now()
        self._talk.thaw()
        self._talk.ask({"op": "warm"})
        self._talk.freeze()
        audit.idle_from_now()
        fresh.refill(count)
        fresh.poison(count)
        self._synchronize()
        audit.idle_until_now()
        start, since = audit.account(), time.perf_counter_ns()
        self._talk.thaw()
        reply = self._talk.ask(_time(fresh, count))
        wall_us = (time.perf_counter_ns() - since) / 1000.0
        self._talk.freeze()
        index = secrets.randbelow(count)
        outputs = [out.clone() for out in fresh.outputs(index)]
        end = audit.account()
        audit.idle_from_now()
        self._look_at_the_device()
        overhead_us = self._reference.baselines.overhead_us + self._delivery_us
        told = [float(t) for t in reply["times_us"]]
        times = audit.block(start, end, wall_us, told, overhead_us)
        self._check(index, outputs)
        first, self._is_first = self._is_first, False
        return told if first else times

    def objection(self) -> str | None:
        """Why the times cannot be believed, None if they can; the candidate may go on."""
        self._audit.idle_until_now()
        self._talk.thaw()
        return self._audit.objection()

    def _look_at_the_device(self) -> None:
        if self._reference.problem.device != "cpu" and not self._was_idle:
            latency_us = _latency_us(self._reference.problem.device)
            self._audit.latency(latency_us)
            self._was_idle = latency_us < IDLE_LATENCY_US

    def _synchronize(self) -> None:
        if self._reference.problem.device != "cpu":
            torch.cuda.synchronize()


def _time(fresh: FreshInputs, count: int) -> dict[str, Any]:
    return {"op": "time", "count": count, "places": fresh.withheld.places(0)}


def _latency_us(device: str) -> float:
    """The longest that the device took for next to nothing, tried for some milliseconds.

    Kernels of another process that are running take turns with it, a time slice each.
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
    """Whether a GPU has work of other processes, none of which has the device's lock.

    Asked for a second: what an ended process has left on it takes a moment to be taken off.
    """
    deadline = time.monotonic() + _LEAVING_S
    while time.monotonic() < deadline:
        if _latency_us(device) < IDLE_LATENCY_US:
            return False
    return True


class ParentLostError(Exception):
    """The parent cannot be timed any more; no fault of the candidate's."""


class TimedParent:
    """A candidate that passed before, timed beside one that was made from it."""

    def __init__(self, talk: Conversation, reference: Reference) -> None:
        self._talk = talk
        self._fresh = reference.fresh

    def block(self, count: int) -> list[float]:
        """Times `count` calls on fresh inputs; raises `ParentLostError`."""
        self._talk.thaw()
        try:
            self._talk.ask({"op": "warm"})
            self._fresh.refill(count)
            times = self._talk.ask(_time(self._fresh, count))["times_us"]
        except (Stop, TimeoutError, WorkerDiedError, LimitExceededError) as error:
            raise ParentLostError from error
        self.end()
        return [float(t) for t in times]

    def end(self) -> None:
        """Has it stand still again."""
        self._talk.freeze()
