"""Estimate of a candidate's time on an absent GPU: a roofline over its operations.

A kernel takes as long as the slowest of three: memory, cache, arithmetic (Williams et al. 2009,
with the cache as a second roof). The figures are peaks from data sheets, so the estimate is a bound
and not a forecast. It can order candidates that differ in data movement and products; it ignores
everything else.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch

from adaexplore.core.problem import PRECISIONS, Precision, TargetName
from adaexplore.core.verdict.evaluation import BoundBy, Estimate
from adaexplore.evaluate.kernels.capture import CapturedLaunch
from adaexplore.evaluate.kernels.count import Op
from adaexplore.evaluate.kernels.targets import Target
from adaexplore.evaluate.offline.builder import SlowInterpretationError
from adaexplore.evaluate.offline.interpreter import Interpreter
from adaexplore.evaluate.offline.traffic import TrafficMemory
from adaexplore.evaluate.timing import roofline
from adaexplore.evaluate.timing.combine import geometric_mean
from adaexplore.evaluate.timing.roofline import Peaks, RooflineModel
from adaexplore.evaluate.wire.offline_messages import KernelWork

LAUNCH_US = 5.0
"""The host's time for a launch by PyTorch or Triton; launches overlap with kernels."""

_PROGRAMS = 4
_CACHE_BYTES_PER_CLOCK = 5120  # NVIDIA A100 white paper; no figure for its successors
_CLOCKS_HZ: dict[TargetName, float] = {"sm_80": 1.41e9, "sm_90": 1.98e9, "sm_100": 1.965e9}


def estimate(works: Iterable[KernelWork], target: Target) -> Estimate:
    """Return the time of kernels that run one after the other while the host launches them.

    The host is ahead of the GPU unless the kernels are shorter than their launches. The estimate is
    partial if the work of a kernel is partial.
    """
    spent: dict[BoundBy, float] = {"memory": 0.0, "compute": 0.0}
    count, partial = 0, False
    for work in works:
        time_us, bound_by = kernel_us(work, target)
        spent[bound_by] += time_us
        count += 1
        partial |= work.partial
    kernels_us, launches_us = sum(spent.values()), LAUNCH_US * count
    if launches_us >= kernels_us:
        return Estimate(launches_us, "overhead", target.name, partial)
    return Estimate(kernels_us, max(spent, key=lambda name: spent[name]), target.name, partial)


def combined(estimates: Sequence[Estimate]) -> Estimate:
    """Return the geometric mean over workloads, as for measured times.

    The result is partial if one estimate is partial; `bound_by` is taken from the longest.
    """
    if len(estimates) == 1:
        return estimates[0]
    longest = max(estimates, key=lambda each: each.time_us)
    time_us = geometric_mean([each.time_us for each in estimates])
    partial = any(each.partial for each in estimates)
    return replace(longest, time_us=time_us, partial=partial)


def least(bytes_moved: int, flops: int, precision: Precision, target: Target) -> Estimate:
    """Return the least time of a call with this traffic and these operations (see `roofline`)."""
    peaks = Peaks(target.bandwidth, {p: target.flops[p] for p in PRECISIONS}, LAUNCH_US)
    model = RooflineModel(roofline.Work(bytes_moved, flops, 0), peaks, precision)
    return Estimate(model.floor_us, model.bound_by, target.name)


def work_of_op(op: Op, precision: Precision) -> KernelWork:
    """Return the work of an operation of torch; its products are in the precision class.

    Products of half precision stay in half precision in every class. A product of float64 counts as
    two of fp32.
    """
    kind: str = precision if op.dtype is torch.float32 else "half"
    flops = op.flops
    if op.dtype in (torch.float64, torch.complex64, torch.complex128):
        kind, flops = "fp32", 2 * flops
    return KernelWork(op.bytes, op.bytes, {kind: flops} if flops else {})


class DryRuns:
    """The work of launches, measured on a few of their programs, which run without data."""

    def __init__(self, interpreter: Interpreter, launch_s: float) -> None:
        self._interpreter = interpreter
        self._launch_s = launch_s
        self._works: dict[Any, KernelWork] = {}

    def work(self, launch: CapturedLaunch) -> KernelWork:
        """Return the work of a launch; its tensors need addresses and sizes only.

        The work is partial if the time does not suffice for a single program. Raises the exceptions
        of `Interpreter.run`.
        """
        key = (launch.kernel.key, launch.grid, tuple(map(_form, launch.args.values())))
        if key not in self._works:
            self._works[key] = self._run(launch)
        return self._works[key]

    def _run(self, launch: CapturedLaunch) -> KernelWork:
        total = math.prod(launch.grid)
        if total == 0:
            return KernelWork(0.0, 0.0, {})
        # The middle of each of `_PROGRAMS` equal parts: work may grow along the grid.
        chosen = sorted({(2 * i + 1) * total // (2 * _PROGRAMS) for i in range(_PROGRAMS)})
        memory = TrafficMemory(launch.args.values())
        flops: Counter[str] = Counter()
        started, began, partial = 0, time.monotonic(), False
        for number in chosen:
            taken = time.monotonic() - began
            if started and taken + taken / started > self._launch_s:
                break
            started += 1
            left = self._launch_s - taken
            try:
                self._interpreter.run(launch, memory, seconds=left, programs=[number])
            except SlowInterpretationError:
                partial = True
            flops.update(self._interpreter.flops)
            if partial:
                break
        share = started / total
        memory_bytes, cache_bytes = memory.moved_bytes(share)
        scaled = {kind: count / share for kind, count in flops.items()}
        return KernelWork(memory_bytes, cache_bytes, scaled, programs=total, partial=partial)


def kernel_us(work: KernelWork, target: Target) -> tuple[float, BoundBy]:
    """Return a kernel's time in microseconds, and the limit that sets it."""
    cache_bandwidth = _CACHE_BYTES_PER_CLOCK * _CLOCKS_HZ[target.name]
    busy = 1.0
    if work.programs is not None:
        busy = min(work.programs / target.multiprocessors, 1.0)
    moving = max(work.memory_bytes / target.bandwidth, work.cache_bytes / cache_bandwidth / busy)
    computing = sum(
        n / target.flops.get(kind, target.flops["half"]) for kind, n in work.flops.items()
    )
    computing /= busy
    return 1e6 * max(moving, computing), "memory" if moving >= computing else "compute"


def _form(value: Any) -> Any:
    """Return the parts of an argument that decide the work of a launch."""
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.stride(), value.dtype)
    return value if isinstance(value, int | float | str | bool | None) else repr(value)
