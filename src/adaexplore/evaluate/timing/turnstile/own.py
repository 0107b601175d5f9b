"""Timed blocks of calls in this process, which has both ends of their turnstile."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from adaexplore.core.protocols.clock import Call, Clock
from adaexplore.evaluate.timing.turnstile.protocol import (
    HEAD_START_S,
    Opened,
    Passages,
    Used,
    nothing_sealed,
    nothing_used,
    own_ends,
)

if TYPE_CHECKING:
    from adaexplore.evaluate.timing.turnstile.seals import Seals
    from adaexplore.evaluate.timing.turnstile.sums import Sums

_DELIVERIES = 300  # calls


@dataclass(frozen=True, slots=True)
class OwnSlots:
    """What the calls of a block pass: `opened` opens the inputs of each.

    On a GPU the `seals` are taken off them, and the `sums` over the outputs are proven.
    """

    opened: Opened
    seals: Seals | None
    sums: Sums | None


def nothing_taken(_: int, __: Any) -> None:
    """Leave the outputs of a call where they are."""


class OwnTurnstile:
    """A turnstile for blocks of calls in this process on a device.

    `delivering_us` has the microseconds that the host took to enqueue what follows each call.
    """

    def __init__(self, device: str) -> None:
        self._turnstile, self._gate = own_ends(device)
        self.delivering_us: deque[float] = deque(maxlen=_DELIVERIES)

    def block(
        self,
        clock: Clock,
        call: Call,
        count: int,
        slots: OwnSlots,
        take: Callable[[int, Any], object] = nothing_taken,
        *,
        used: Used = nothing_used,
        head_start_s: float = HEAD_START_S,
    ) -> tuple[list[float], Passages]:
        """Time `count` calls, in microseconds; `take` delivers the outputs of each."""
        seals = slots.seals

        def ready(i: int) -> None:
            self._gate.enter(i, (), partial(seals.turn, i) if seals else nothing_sealed)

        def deliver(i: int, outputs: Any) -> None:
            began = time.perf_counter()
            take(i, outputs)
            self._gate.delivered(i, slots.sums)
            self.delivering_us.append(1e6 * (time.perf_counter() - began))

        with self._turnstile.attended(
            count,
            slots.opened,
            used=used,
            asking=threading.get_native_id(),
            head_start_s=head_start_s,
        ) as passages:
            times_us = clock.block(call, count, deliver, ready)
            self._gate.leave()
        return times_us, passages
