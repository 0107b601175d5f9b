"""Candidates that make use of weights being constant, as they are only before training."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from adaexplore.core.evaluation import Timing
from adaexplore.core.labels import CONSTANT_WEIGHTS
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.timed import ParentLostError, TimedParent
from adaexplore.evaluate.judge.verify import Verified, rebuild
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.truth.constants import MovedConstants
from adaexplore.evaluate.wire import messages as wire

_GAIN = 1.25
"""A candidate that is faster by this with constant weights than with others makes use of them."""
_BLOCKS = 3
_SPAN_US = 20_000.0
_NAMED = 3


@dataclass(frozen=True, slots=True)
class UseOfConstants:
    """The label of a candidate that makes use of constant weights, and a note that names them."""

    labels: tuple[str, ...] = ()
    note: str = ""


def use_of_constants(
    talk: Conversation, reference: Reference, verified: Verified, timings: Mapping[str, Timing]
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
    workload = reference.timed[0]
    timing = timings[workload.name]
    if timing.speedup < _GAIN:
        return UseOfConstants()
    count = max(min(int(_SPAN_US / timing.time_us), workload.fresh.count), 1)
    rebuild(talk, reference, constants.seed, verified.follows)
    other_us = _time_us(talk, workload, count)
    talk.ask(wire.Restore())
    # The machine may have been slow for a moment, so the first model is timed once more.
    if other_us < _GAIN * timing.time_us or other_us < _GAIN * _time_us(talk, workload, count):
        return UseOfConstants()
    return _found(constants, "it is slower with other values of")


def _time_us(talk: Conversation, workload: JudgedWorkload, count: int) -> float:
    """Return the least median of a few blocks; infinity if the process is lost."""
    party = TimedParent(talk, workload)
    try:
        return min(statistics.median(party.block(count)) for _ in range(_BLOCKS))
    except ParentLostError:
        return float("inf")
    finally:
        talk.thaw()


def _found(constants: MovedConstants, how: str) -> UseOfConstants:
    names = ", ".join(list(constants.values)[:_NAMED])
    more = len(constants.values) - _NAMED
    names += f" and {more} more" if more > 0 else ""
    return UseOfConstants((CONSTANT_WEIGHTS,), f"{CONSTANT_WEIGHTS}: {how} {names}")
