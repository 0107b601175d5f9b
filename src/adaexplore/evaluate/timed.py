"""Timed blocks of a candidate: on inputs it has not seen, with outputs it cannot take back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import torch

from adaexplore.evaluate.audit import Audit
from adaexplore.evaluate.compare import Truth
from adaexplore.evaluate.conversation import Conversation, Stop
from adaexplore.evaluate.reference import Reference
from adaexplore.evaluation import Failed

CheckOutput = Callable[[torch.Tensor, Truth, str], None]


class TimedCandidate:
    """A candidate as a party of `measure`.

    `check` compares an output with its truth and raises `Stop` where it is wrong.
    """

    def __init__(self, talk: Conversation, reference: Reference, check: CheckOutput) -> None:
        self._talk = talk
        self._reference = reference
        self._check = check
        self._audit = Audit(talk.pid, reference.problem.device)

    def block(self, count: int) -> list[float]:
        """Times `count` calls and checks one of them, chosen when all were done."""
        fresh, baselines = self._reference.fresh, self._reference.baselines
        self._audit.idle_until(time.monotonic())
        self._talk.ask({"op": "warm"})
        self._audit.idle_from(time.monotonic())
        fresh.refill(count)
        fresh.poison(count)
        self._synchronize()
        self._audit.idle_until(time.monotonic())
        started = time.perf_counter_ns()
        reply = self._talk.ask({"op": "time", "count": count})
        wall_us = (time.perf_counter_ns() - started) / 1000.0
        self._audit.idle_from(time.monotonic())
        times = [float(t) for t in reply["times_us"]]
        self._audit.block(wall_us, times, baselines.overhead_us)
        self._check_one(secrets.randbelow(count))
        return times

    def check_honesty(self) -> None:
        """`Stop` where the times cannot be believed."""
        objection = self._audit.objection()
        if objection:
            raise Stop(Failed("rejected", objection))

    def _check_one(self, index: int) -> None:
        truths = self._reference.truths_of_slot(index)
        if truths is None:
            raise Stop(Failed("wrong_output", "forward() changes its inputs in place"))
        for out, truth in zip(self._reference.fresh.outputs(index), truths, strict=True):
            self._check(out, truth, "while being timed")

    def _synchronize(self) -> None:
        if self._reference.problem.device != "cpu":
            torch.cuda.synchronize()
