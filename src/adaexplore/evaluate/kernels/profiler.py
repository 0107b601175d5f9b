"""Profiling in the candidate's process with PyTorch's profiler (CUPTI on a GPU).

The result is plain data, which `profile` interprets in the judge.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.autograd import profiler as kineto  # `torch.profiler` imports Dynamo when it starts

from adaexplore.evaluate.kernels.launches import Launches, watched_launches
from adaexplore.evaluate.wire.kernel_messages import (
    LaunchForm,
    Profiled,
    ProfiledKernel,
    ProfiledTriton,
)

_DEVICE_EVENTS = ("kernel", "gpu_memcpy", "gpu_memset")
OUTSIDE = "outside PyTorch's operators"


def profile_calls(call: Callable[[int], object], count: int, device: str) -> Profiled:
    """Profile `count` calls; return totals by kernel (on the CPU: by operator).

    The caches hold the data of the previous call, so only the shares count; times are measured
    elsewhere. Raises `RuntimeError` where the profiler does not work.
    """
    call(0)  # the set-up of a first call does not belong in the profile
    with watched_launches(Path.cwd()) as launches:
        kernels = _operators(call, count) if device == "cpu" else kernels_in(_trace(call, count))
    return Profiled(count, tuple(kernels), _described(launches))


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fill the memory that `torch.empty` returns in the body with NaN: stale data becomes wrong."""
    was = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # in this mode PyTorch fills it
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was, warn_only=warn_only)


def kernels_in(trace: Mapping[str, Any]) -> list[ProfiledKernel]:
    """Return the kernels, copies and fills of a Chrome trace, summed by name.

    Times are in microseconds. `launch` describes the first launch; it is None for copies and fills.
    """
    found: dict[str, ProfiledKernel] = {}
    for event in trace["traceEvents"]:
        if event.get("cat") not in _DEVICE_EVENTS:
            continue
        name = event["name"]
        seen = found.get(name) or ProfiledKernel(name, 0, 0.0, _launch(event))
        time_us = seen.time_us + float(event["dur"])
        found[name] = replace(seen, launches=seen.launches + 1, time_us=time_us)
    return list(found.values())


def _launch(event: Mapping[str, Any]) -> LaunchForm | None:
    args = event.get("args", {})
    if event["cat"] != "kernel" or "grid" not in args:
        return None
    percent = args.get("est. achieved occupancy %")
    return LaunchForm(
        grid=tuple(args["grid"]),
        block=tuple(args["block"]),
        registers=int(args.get("registers per thread", 0)),
        shared_bytes=int(args.get("shared memory", 0)),
        occupancy=None if percent is None else float(percent) / 100.0,
    )


def _trace(call: Callable[[int], object], count: int) -> dict[str, Any]:
    torch.cuda.synchronize()
    with kineto.profile(use_device="cuda", use_cpu=False, use_kineto=True) as profiler:
        for i in range(count):
            call(i)
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json", dir=Path.cwd()) as file:
        profiler.export_chrome_trace(file.name)
        trace: dict[str, Any] = json.loads(Path(file.name).read_text())
    return trace


def _operators(call: Callable[[int], object], count: int) -> list[ProfiledKernel]:
    """Return the time in each operator itself, without the operators that it calls."""
    for calls in (1, count):  # starting a profiler for the first time takes milliseconds
        with kineto.profile(use_kineto=True) as profiler:
            for i in range(calls):
                with kineto.record_function(OUTSIDE):
                    call(i)
    return [
        ProfiledKernel(e.key, e.count, float(e.self_cpu_time_total), None)
        for e in profiler.key_averages()
    ]


def _described(launches: Launches) -> tuple[ProfiledTriton, ...]:
    return tuple(
        ProfiledTriton(name, *facts, *launches.given.get(name, (0, 0)))
        for name, facts in launches.kernels.items()
    )
