"""Timing one call after another on a device, the same way for candidates and baselines."""

from __future__ import annotations

import time

import torch

from adaexplore.core.protocols.clock import Call, Clock, Ready, Sink

_PARALLEL_ELEMENTS = 32_768  # PyTorch's grain size: below it, one thread does all


class CpuClock:
    """Wall time on the CPU, the threads of the pool being awake when a call begins.

    Between two calls they go to sleep; being woken takes them longer than many a kernel, and how
    long depends on what else the machine does.
    """

    warmup_us = 3000.0
    """Long enough for another process's idle threads to stop spinning."""

    def __init__(self) -> None:
        self._work = torch.zeros(_PARALLEL_ELEMENTS * torch.get_num_threads(), dtype=torch.int8)

    def warm(self, call: Call) -> None:
        """See `Clock.warm`."""
        now = time.perf_counter_ns
        deadline = now() + int(1000 * self.warmup_us)
        call(0)
        i = 1
        while now() < deadline:
            call(i)
            i += 1

    def block(self, call: Call, count: int, sink: Sink, ready: Ready | None = None) -> list[float]:
        """See `Clock.block`."""
        now = time.perf_counter_ns
        times = []
        for i in range(count):
            self._work.neg_()
            if ready:
                ready(i)
            start = now()
            outputs = call(i)
            times.append((now() - start) / 1000.0)
            sink(i, outputs)
        return times


class CudaClock:
    """Device time between two events around the call, the L2 cache overwritten before it."""

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)

    def warm(self, call: Call) -> None:
        """See `Clock.warm`."""
        for i in range(2):
            call(i)
        torch.cuda.synchronize(self._device)

    def block(self, call: Call, count: int, sink: Sink, ready: Ready | None = None) -> list[float]:
        """See `Clock.block`."""
        from adaexplore.evaluate.timing.turnstile.seals import cache_key_of  # it needs Triton

        overwrite = cache_key_of(self._device).overwrite
        starts = [timing_event() for _ in range(count)]
        ends = [timing_event() for _ in range(count)]
        for i in range(count):
            if ready:
                ready(i)
            else:
                overwrite()
            starts[i].record()
            outputs = call(i)
            ends[i].record()
            sink(i, outputs)
        torch.cuda.synchronize(self._device)
        return [1000.0 * s.elapsed_time(e) for s, e in zip(starts, ends, strict=True)]


def timing_event() -> torch.cuda.Event:
    """Make an event that tells the time at which the device reaches it."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def clock_for(device: str) -> Clock:
    """The clock of a device name."""
    return CudaClock(device) if device.startswith("cuda") else CpuClock()
