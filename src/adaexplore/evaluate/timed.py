"""Timed blocks of a candidate: on inputs it has not seen, with outputs it cannot take back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import torch

from adaexplore.evaluate.audit import Audit
from adaexplore.evaluate.compare import Truth
from adaexplore.evaluate.conditions import Gauge, worst
from adaexplore.evaluate.conversation import Conversation, Stop
from adaexplore.evaluate.reference import Reference
from adaexplore.evaluation import Conditions, Failed
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.watch import OverrunError

CheckOutput = Callable[[torch.Tensor, Truth, str], None]


class TimedCandidate:
    """A candidate as a party of `measure`.

    `check` compares an output with its truth and raises `Stop` where it is wrong.
    """

    def __init__(
        self, talk: Conversation, reference: Reference, check: CheckOutput, gauge: Gauge
    ) -> None:
        self._talk = talk
        self._reference = reference
        self._check = check
        self._gauge = gauge
        self._readings: list[Conditions] = []
        self._audit = Audit(talk.pid, reference.problem.device, torch.get_num_threads())

    def block(self, count: int) -> list[float]:
        """Times `count` calls and checks one of them, chosen when all were done."""
        fresh, baselines = self._reference.fresh, self._reference.baselines
        self._go()
        self._talk.ask({"op": "warm"})
        self._halt()
        fresh.refill(count)
        fresh.poison(count)
        self._synchronize()
        self._go()
        start = self._audit.account()
        since = time.perf_counter_ns()
        reply = self._talk.ask({"op": "time", "count": count})
        wall_us = (time.perf_counter_ns() - since) / 1000.0
        end = self._audit.account()
        self._readings.append(self._gauge.read())
        self._halt()
        times = [float(t) for t in reply["times_us"]]
        self._audit.block(start, end, wall_us, times, baselines.overhead_us)
        self._check_one(secrets.randbelow(count))
        return times

    def conditions(self) -> Conditions:
        """What the device was like, at its worst."""
        return worst(self._readings)

    def objection(self) -> str | None:
        """Why the times cannot be believed, None if they can; the candidate may go on."""
        self._go()
        return self._audit.objection()

    def _halt(self) -> None:
        """Nothing of the candidate's runs while inputs are drawn or a baseline is timed.

        A process that got away from its group goes on, but not unseen.
        """
        self._talk.freeze()
        self._audit.idle_from_now()

    def _go(self) -> None:
        self._audit.idle_until_now()
        self._talk.thaw()

    def _check_one(self, index: int) -> None:
        truths = self._reference.truths_of_slot(index)
        if truths is None:
            raise Stop(Failed("wrong_output", "forward() changes its inputs in place"))
        for out, truth in zip(self._reference.fresh.outputs(index), truths, strict=True):
            self._check(out, truth, "while being timed")

    def _synchronize(self) -> None:
        if self._reference.problem.device != "cpu":
            torch.cuda.synchronize()


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
            times = self._talk.ask({"op": "time", "count": count})["times_us"]
        except (Stop, TimeoutError, WorkerDiedError, OverrunError) as error:
            raise ParentLostError from error
        self.end()
        return [float(t) for t in times]

    def end(self) -> None:
        """Has it stand still again."""
        self._talk.freeze()
