"""Both ends of a turnstile in the judge's own process, for its baselines on a GPU.

The device does the same as for candidates. But a thread that polls would take Python's lock from
the thread that launches kernels. So the judge's thread sleeps until there is something to open, and
events on the device give the windows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import torch

from adaexplore.evaluate.timing.clock import timing_event
from adaexplore.evaluate.timing.turnstile.on_device import DeviceGate, DeviceTurnstile
from adaexplore.evaluate.timing.turnstile.protocol import (
    HEAD_START_S,
    Left,
    Opened,
    Passages,
    Unseal,
    Used,
    nothing_sealed,
    nothing_used,
)

if TYPE_CHECKING:
    from adaexplore.evaluate.timing.turnstile.sums import Sums


class OwnDevicePassage:
    """Both ends of a turnstile on a device (see `Turnstile` and `Gate`)."""

    def __init__(self, device: str) -> None:
        self._turnstile = DeviceTurnstile()
        self._gate = DeviceGate(self._turnstile.other_end, device)
        self._device = torch.device(device)
        self._entered: SimpleQueue[int] = SimpleQueue()
        self._queued: SimpleQueue[int] = SimpleQueue()
        self._entering_us: list[float] = []
        self._opened: list[torch.cuda.Event] = []
        self._closed: list[torch.cuda.Event] = []

    @property
    def other_end(self) -> int:
        """See `Turnstile.other_end`."""
        return self._turnstile.other_end

    def forget_other_end(self) -> object:
        """See `Turnstile.forget_other_end`."""
        return self._turnstile.forget_other_end()

    @contextmanager
    def attended(
        self,
        count: int,
        opened: Opened,
        left: Left | None = None,  # noqa: ARG002 - nobody else sees the outputs
        used: Used = nothing_used,  # noqa: ARG002
        *,
        asking: int = 0,  # noqa: ARG002
        telling: int = 0,  # noqa: ARG002
        head_start_s: float = HEAD_START_S,
    ) -> Iterator[Passages]:
        """See `Turnstile.attended`; the body makes all calls, or raises."""
        passages, over = Passages(), threading.Event()
        self._turnstile.begin()
        self._opened, self._closed, self._entering_us = [], [], []
        self._entered, self._queued = SimpleQueue(), SimpleQueue()
        with ThreadPoolExecutor(1) as threads:
            admitting = threads.submit(self._admit, count, opened, over, head_start_s)
            try:
                yield passages
                admitting.result()
            except BaseException:  # Ctrl-C too: thread and device must not wait for ever
                over.set()
                self._entered.put(-1)
                self._turnstile.release()
                raise
        torch.cuda.synchronize(self._device)
        pairs = zip(self._opened, self._closed, strict=True)
        passages.windows_us = [1000.0 * begin.elapsed_time(end) for begin, end in pairs]
        passages.worked_us = [0.0] * count
        passages.entering_us = self._entering_us[1:]

    def enter(
        self, call: int, addresses: Sequence[int] = (), unseal: Unseal = nothing_sealed
    ) -> None:
        """See `Gate.enter`."""
        if call > 1:
            self._closed[call - 2].synchronize()

        def opening() -> None:
            self._opened.append(_recorded())
            unseal()

        began = time.perf_counter()
        self._gate.enter(call, addresses, opening)
        self._entering_us.append(1e6 * (time.perf_counter() - began))
        self._entered.put(call)

    def delivered(self, call: int, sums: Sums | None = None) -> None:
        """See `Gate.delivered`."""
        self._gate.delivered(call, sums)
        self._closed.append(_recorded())
        self._queued.put(call)

    def leave(self, addresses: Sequence[int] = ()) -> None:
        """See `Gate.leave`."""
        self._gate.leave(addresses)

    def _admit(
        self, count: int, opened: Opened, over: threading.Event, head_start_s: float
    ) -> None:
        for i in range(count):
            self._entered.get()
            self._await_queued(i, head_start_s)
            if over.is_set():
                return
            if i:
                self._closed[i - 1].synchronize()  # the page has room for one key
            self._turnstile.open(i, opened(i))

    def _await_queued(self, call: int, head_start_s: float) -> None:
        deadline = time.monotonic() + head_start_s
        try:
            while self._queued.get(timeout=max(deadline - time.monotonic(), 0.0)) < call:
                pass
        except Empty:
            return


def _recorded() -> torch.cuda.Event:
    event = timing_event()
    event.record()
    return event
