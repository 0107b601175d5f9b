"""Rounds of timed blocks, and how long their threads waited for a processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

QUIET = 0.02
"""The share of a block for which its threads may wait for a processor."""

_TURN_US = 5.0  # of waiting, for a call: two processes take turns at a turnstile
_PATIENCE = 3  # times as many rounds as are asked for

TimeBlock = Callable[[int], list[float]]
"""Times that many calls and returns microseconds each."""


@dataclass(frozen=True, slots=True)
class Block:
    """A timed block of one party.

    `time_us` is the median of its calls in microseconds, and `excess_us` what their mean is above
    it. `waited` is the share of the block's time for which threads of the party were ready to run
    and had no processor; several threads may add up to more than 1. `calls` is their number.
    `open_us` is what the times leave unexplained in a call.
    """

    time_us: float
    excess_us: float = 0.0
    waited: float = 0.0
    calls: int = 1
    open_us: float = 0.0


Round = Mapping[str, Block]
"""A block of every party, by name."""


def no_waiting() -> float:
    """Return zero: nothing is known of other load on the processors."""
    return 0.0


def timed_block(block: TimeBlock, count: int, waited_us: Callable[[], float]) -> Block:
    """Time a block of `count` calls.

    `waited_us` returns the microseconds for which the party's threads have waited so far.
    """
    waited_before_us, since = waited_us(), time.perf_counter_ns()
    times = block(count)
    wall_us = (time.perf_counter_ns() - since) / 1000.0
    waited = max(waited_us() - waited_before_us - count * _TURN_US, 0.0) / max(wall_us, 1.0)
    return Block(median(times), max(fmean(times) - median(times), 0.0), waited, count)


def is_quiet(blocks: Round) -> bool:
    """Return whether no party was kept waiting for a processor."""
    return all(block.waited <= QUIET for block in blocks.values())


def quiet_rounds(take: Callable[[], Round], count: int) -> list[Round]:
    """Take rounds until `count` of them are quiet, at most three times as many.

    Returns the quiet ones, or all rounds where too few are quiet.
    """
    rounds: list[Round] = []
    for _ in range(_PATIENCE * count):
        rounds.append(take())
        quiet = [blocks for blocks in rounds if is_quiet(blocks)]
        if len(quiet) == count:
            return quiet
    return rounds
