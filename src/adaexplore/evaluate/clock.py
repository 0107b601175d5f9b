"""Timing one call after another on a device, the same way for candidates and baselines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import torch

Call = Callable[[int], object]
"""Runs call number `i`; the number chooses the inputs."""


class Clock(Protocol):
    """Times single calls."""

    def block(self, call: Call, count: int) -> list[float]:
        """Warms up briefly, then times `count` calls; returns microseconds each."""
        ...


class CpuClock:
    """Wall time on the CPU."""

    warmup_us = 3000.0
    """Warm-up of each block: long enough for another process's idle threads to stop spinning."""

    def block(self, call: Call, count: int) -> list[float]:
        """See `Clock.block`."""
        now = time.perf_counter_ns
        deadline = now() + int(1000 * self.warmup_us)
        call(-1)
        while now() < deadline:
            call(-1)
        times = []
        for i in range(count):
            start = now()
            call(i)
            times.append((now() - start) / 1000.0)
        return times


class CudaClock:
    """Device time between two events around the call, with the L2 cache overwritten before it."""

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        size = torch.cuda.get_device_properties(self._device).L2_cache_size
        self._flush = torch.empty(max(2 * size, 1 << 25), dtype=torch.int8, device=self._device)

    def block(self, call: Call, count: int) -> list[float]:
        """See `Clock.block`."""
        starts = [_event() for _ in range(count)]
        ends = [_event() for _ in range(count)]
        for _ in range(2):
            call(-1)
        torch.cuda.synchronize(self._device)
        for i in range(count):
            self._flush.zero_()
            starts[i].record()
            call(i)
            ends[i].record()
        torch.cuda.synchronize(self._device)
        return [1000.0 * s.elapsed_time(e) for s, e in zip(starts, ends, strict=True)]


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def clock_for(device: str) -> Clock:
    """The clock of a device name."""
    return CpuClock() if device == "cpu" else CudaClock(device)
