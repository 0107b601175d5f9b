"""Profiling in the candidate's process, with PyTorch's own profiler (CUPTI on a GPU).

Gives plain data: `profile` in the judge says what it means.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.autograd import profiler as kineto  # `torch.profiler` imports Dynamo when it starts

from adaexplore.evaluate.kernels.launches import Launches, watched_launches

_DEVICE_EVENTS = ("kernel", "gpu_memcpy", "gpu_memset")
OUTSIDE = "outside PyTorch's operators"


def profile_calls(call: Callable[[int], object], count: int, device: str) -> dict[str, Any]:
    """Runs `count` calls under the profiler: kernels (on the CPU: operators), totals per name.

    The caches are as the call before left them: shares are what to read from it, while times
    are measured elsewhere. Raises `RuntimeError` where the profiler does not work.
    """
    call(0)  # what a first call does once is nobody's profile
    with watched_launches(Path.cwd()) as launches:
        kernels = _operators(call, count) if device == "cpu" else kernels_in(_trace(call, count))
    return {"calls": count, "kernels": kernels, "triton": _described(launches)}


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fills what `torch.empty` returns in the body with NaN, so that nothing stale looks right."""
    was = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # under which PyTorch does so
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was, warn_only=warn_only)


def kernels_in(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The kernels, copies and fills of a Chrome trace, summed by name; launches as first seen.

    Times in microseconds. `launch` is None for copies and fills.
    """
    found: dict[str, dict[str, Any]] = {}
    for event in trace["traceEvents"]:
        if event.get("cat") not in _DEVICE_EVENTS:
            continue
        name = event["name"]
        entry = found.setdefault(
            name, {"name": name, "launches": 0, "time_us": 0.0, "launch": _launch(event)}
        )
        entry["launches"] += 1
        entry["time_us"] += float(event["dur"])
    return list(found.values())


def _launch(event: Mapping[str, Any]) -> dict[str, Any] | None:
    args = event.get("args", {})
    if event["cat"] != "kernel" or "grid" not in args:
        return None
    percent = args.get("est. achieved occupancy %")
    return {
        "grid": args["grid"],
        "block": args["block"],
        "registers": int(args.get("registers per thread", 0)),
        "shared_bytes": int(args.get("shared memory", 0)),
        "occupancy": None if percent is None else float(percent) / 100.0,
    }


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


def _operators(call: Callable[[int], object], count: int) -> list[dict[str, Any]]:
    """Time in each operator itself, without those it calls; and what is left of the calls."""
    for calls in (1, count):  # starting a profiler for the first time takes milliseconds
        with kineto.profile(use_kineto=True) as profiler:
            for i in range(calls):
                with kineto.record_function(OUTSIDE):
                    call(i)
    return [
        {"name": e.key, "launches": e.count, "time_us": e.self_cpu_time_total, "launch": None}
        for e in profiler.key_averages()
    ]


def _described(launches: Launches) -> list[dict[str, Any]]:
    return [
        {"name": name, "own": own, "spills_bytes": spilled}
        for name, (own, spilled) in launches.kernels.items()
    ]
