"""Candidates that make use of weights being constant, as they are only before training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from adaexplore.core.verdict.evaluation import Failed, Timing
from adaexplore.core.verdict.labels import CONSTANT_WEIGHTS
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.timed import TimedCandidate
from adaexplore.evaluate.judge.verify import VerifiedCandidate, rebuild
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.truth.compare import Deviation, near
from adaexplore.evaluate.truth.given.constants import MovedConstants
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.tensors import Layout
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.user.values import Inputs
from adaexplore.sandbox.watchdog import LimitExceededError

_GAIN = 1.25
"""A candidate that is faster by this with constant weights than with others makes use of them."""
_TRIES = 3
"""It has to be faster in every one of these pairs of times: a machine that is slow for a moment
spoils one pair."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class UseOfConstants:
    """The label of a candidate that makes use of constant weights, and a note that names them."""

    labels: tuple[str, ...] = ()
    note: str = ""


def use_of_constants(
    talk: Conversation,
    reference: Reference,
    verified: VerifiedCandidate,
    timings: Mapping[str, Timing],
) -> UseOfConstants:
    """Return how a measured candidate makes use of constant weights; the caller holds the device.

    It does if its output follows no other values of them. It does as well if it is faster with the
    constants than with other values, since it may look at them and skip work.
    """
    constants = reference.first.truths.moved_constants
    if constants is None:
        return UseOfConstants()
    if verified.follows is None:
        return _found(constants, "its output does not follow other values of")
    for workload in reference.timed:
        timing, own = timings[workload.name], workload.truths.moved_constants
        if own is None or timing.speedup < _GAIN:
            continue
        moved = replace(own, values=constants.values)
        how = _use_on(talk, reference, verified, workload, moved, timing.time_us)
        if how:
            return _found(constants, how)
    return UseOfConstants()


def _use_on(
    talk: Conversation,
    reference: Reference,
    verified: VerifiedCandidate,
    workload: JudgedWorkload,
    constants: MovedConstants,
    time_us: float,
) -> str:
    """Return how a candidate uses the constants on a workload, empty where it does not."""
    assert verified.follows is not None
    layout = verified.layouts[workload.name]
    for _ in range(_TRIES):
        rebuild(talk, reference, constants.seed, verified.follows)
        other_us = _time_us(_Moved(talk, workload, verified, layout, constants), time_us)
        if math.isinf(other_us):
            return "its timed calls do not follow other values of"
        talk.ask(wire.Restore())
        if other_us < _GAIN * time_us:
            return ""
        first = TimedCandidate(talk, workload, verified.reached, layout)
        if other_us < _GAIN * _time_us(first, time_us):
            return ""
    return "it is slower with other values of"


class _Moved(TimedCandidate):
    """A candidate whose constant weights have other values.

    One output of each of its blocks is compared as well: it might skip a branch in timed calls
    alone. The bounds are those of the verified call with these values.
    """

    def __init__(
        self,
        talk: Conversation,
        workload: JudgedWorkload,
        verified: VerifiedCandidate,
        layout: Layout,
        constants: MovedConstants,
    ) -> None:
        super().__init__(talk, workload, verified.reached, layout)
        self._runs = _with_values(workload.runs, constants)
        self._bounds = [_twice(t.bounds[verified.reached.precision]) for t in constants.truths]

    def _compare(self, inputs: Inputs, outputs: Sequence[torch.Tensor]) -> None:
        expected = self._runs.run("fp32", inputs)
        for out, (path, strict), bound in zip(outputs, expected, self._bounds, strict=True):
            if not near(out, strict, bound):
                raise Stop(Failed("wrong_output", f"{path} is wrong with other weights"))


def _twice(bound: Deviation) -> Deviation:
    """Return the bound of an output against a strict run, which is off by at most one itself."""
    return Deviation(2.0 * bound.norm, 2.0 * bound.element)


def _with_values(runs: ReferenceRuns, constants: MovedConstants) -> ReferenceRuns:
    """Build the reference once more, with other values for its constant weights."""
    other = runs.with_weights(constants.seed)
    state = other.instance.model.state_dict()
    with torch.no_grad():
        for name, value in constants.values.items():
            state[name].copy_(value.tensor)
    return other


def _time_us(timed: TimedCandidate, about_us: float) -> float:
    """Return the least median of a few blocks; infinity where a call fails or is wrong."""
    try:
        return timed.brief_us(about_us)
    except (Stop, TimeoutError, WorkerDiedError, LimitExceededError):
        return math.inf
    finally:
        timed.resume()


def _found(constants: MovedConstants, how: str) -> UseOfConstants:
    names = ", ".join(list(constants.values)[:_NAMED])
    more = len(constants.values) - _NAMED
    names += f" and {more} more" if more > 0 else ""
    return UseOfConstants((CONSTANT_WEIGHTS,), f"{CONSTANT_WEIGHTS}: {how} {names}")
