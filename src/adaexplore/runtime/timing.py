"""The times of the kernel and of the original on this machine."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.runtime import ops
from adaexplore.runtime.inputs import inputs_of
from adaexplore.runtime.interface import call_of
from adaexplore.runtime.kernel import original_on, run_candidate, state_of_package
from adaexplore.runtime.loaded import SPEC
from adaexplore.runtime.spec import VerifiedWorkload

_CACHE_BYTES = 1 << 28
_SECONDS = 0.1
Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Times:
    """Microseconds of a call of the kernel, the original, and the original under `torch.compile`.

    On a GPU, each is in a CUDA graph where it can be captured, and finds nothing in the cache.
    """

    kernel_us: float
    eager_us: float
    compile_us: float


@torch.no_grad()
def times_of(workload: VerifiedWorkload) -> Times:
    """Return the times on a workload's inputs."""
    device = torch.device(SPEC.device)
    inputs, state = inputs_of(workload, device), state_of_package(device)
    args, kwargs = call_of(SPEC.interface, inputs, flat=True)
    original = _original_with(state, device)
    compiled = torch.compile(original)
    # Writing to a cache again and again would fill it: such a kernel is timed without that.
    run = run_candidate if SPEC.interface.writes else ops.forward
    calls: list[Call] = [
        lambda: run(inputs, state),
        lambda: original(*args, **kwargs),
        lambda: compiled(*args, **kwargs),
    ]
    return Times(*_medians_us([_prepared(call, device) for call in calls], device))


def _original_with(state: Sequence[Tensor], device: torch.device) -> nn.Module:
    model = copy.deepcopy(original_on(device))
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, tensor in zip(SPEC.state, state, strict=True):
        own[name].copy_(tensor)
    return model


def _prepared(call: Call, device: torch.device) -> Call:
    """Warm a call up, and return it as a CUDA graph where it can be captured."""
    for _ in range(3):
        call()
    if device.type != "cuda":
        return call
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError:  # such as a copy to the CPU
        return call
    return graph.replay


def _medians_us(calls: Sequence[Call], device: torch.device) -> list[float]:
    """Return the median time of each call; the calls take turns."""
    clock = _cpu_time_us if device.type == "cpu" else _GpuClock(device)
    samples: list[list[float]] = [[] for _ in calls]
    end = time.monotonic() + _SECONDS * len(calls)
    while time.monotonic() < end or len(samples[0]) < 5:
        for call, taken in zip(calls, samples, strict=True):
            taken.append(clock(call))
    return [statistics.median(taken) for taken in samples]


def _cpu_time_us(call: Call) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1e6


class _GpuClock:
    """The time between two events around a call, the L2 cache overwritten before it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._cache = torch.empty(_CACHE_BYTES, dtype=torch.int8, device=device)

    def __call__(self, call: Call) -> float:
        before, after = (torch.Event(self._device, enable_timing=True) for _ in range(2))
        self._cache.zero_()
        before.record()
        call()
        after.record()
        torch.cuda.synchronize(self._device)
        return float(before.elapsed_time(after)) * 1e3
