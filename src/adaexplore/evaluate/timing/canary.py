"""The canary: a small fixed piece of work whose time says whether a device keeps its speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from adaexplore.evaluate.timing.clock import timing_event
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.lock import device_lock

_REPEATS = 30
_LOOPS = 4_000
_SIZE = 4096  # of a product of matrices in half precision: it draws the most power
_COPIED_BYTES = 1 << 28


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Time the canary on request, with the device to itself; a worker's entry."""
    runs: Callable[[], float] | None = None
    while True:
        device: str = channel.receive()["device"]
        with device_lock(device, exclusive=True):
            runs = runs or (_loop_us if device == "cpu" else _gpu_canary(device))
            channel.send({"time_us": runs()})


def _loop_us() -> float:
    """Return the least time of a loop of integer arithmetic, in microseconds.

    The least of many short ones does not depend on the other work of the machine, but on the speed
    of its cores and of the interpreter.
    """

    def once() -> float:
        began, value = time.perf_counter(), 1
        for _ in range(_LOOPS):
            value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        return 1e6 * (time.perf_counter() - began)

    return min(once() for _ in range(_REPEATS))


def _gpu_canary(device: str) -> Callable[[], float]:
    """Return a function that times a product and a copy: the clocks of the cores and of memory.

    Its time is the median, in microseconds: nobody else is meant to be on the GPU. Another copy
    goes before, so that the GPU waits for nothing that a busy host launches too late.
    """
    left = torch.ones(_SIZE, _SIZE, dtype=torch.bfloat16, device=device)
    source = torch.empty(_COPIED_BYTES, dtype=torch.uint8, device=device)
    product, copy = torch.empty_like(left), torch.empty_like(source)

    def once() -> float:
        begin, end = timing_event(), timing_event()
        copy.copy_(source)
        begin.record()
        torch.mm(left, left, out=product)
        copy.copy_(source)
        end.record()
        end.synchronize()
        return 1e3 * float(begin.elapsed_time(end))

    def runs() -> float:
        once()  # the first after a pause finds lower clocks
        return median(once() for _ in range(_REPEATS))

    return runs
