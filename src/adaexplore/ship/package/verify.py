"""Verification and timing of the kernel on this machine: `python -m PACKAGE.verify` prints JSON."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from adaexplore.ship.package import ops
from adaexplore.ship.package.compare import relative_error
from adaexplore.ship.package.inputs import inputs_of, variation_of
from adaexplore.ship.package.kernel import (
    original_on,
    run_candidate,
    run_original,
    state_of_package,
)
from adaexplore.ship.package.loaded import SPEC
from adaexplore.ship.package.spec import Workload, gpu_of, versions

_SEEDS = (1, 2)


@dataclass(frozen=True, slots=True)
class Times:
    """Microseconds of a call of each party; 0 for `torch.compile` where it was left out."""

    kernel_us: float
    eager_us: float
    compile_us: float = 0.0


@dataclass(frozen=True, slots=True)
class Verified:
    """The largest relative error of a workload's outputs, and its times, None if not asked for."""

    workload: str
    error: float
    times: Times | None = None


@torch.no_grad()
def error_of(workload: Workload, *, fresh: bool = SPEC.fresh) -> float:
    """Return the largest relative error on a workload's inputs, their variations and other weights.

    The weights change through `.data`, which counts no version: a kernel that keeps values that it
    computed from them has a large error.
    """
    device = torch.device(SPEC.device)
    model = original_on(device)
    state = state_of_package(device)
    drawn = [inputs_of(workload, device, seed) for seed in (SPEC.seed, *_SEEDS)]
    calls = [*drawn, *(variation_of(drawn[0], seed) for seed in _SEEDS)]
    worst = 0.0
    for inputs in calls:
        found = run_candidate(inputs, state, fresh=fresh)
        worst = max(worst, relative_error(found, run_original(model, inputs, state)))
    for _ in _each_weight_changed(state):
        found = run_candidate(calls[0], state, fresh=fresh)
        worst = max(worst, relative_error(found, run_original(model, calls[0], state)))
    return worst


def times_of(workload: Workload, *, compiled: bool, seconds: float = 0.3) -> Times:
    """Return the times of the kernel, the original, and the original under `torch.compile`."""
    device = torch.device(SPEC.device)
    model, state = original_on(device), state_of_package(device)
    inputs = inputs_of(workload, device)
    calls: list[Callable[[], Any]] = [
        lambda: ops.forward(inputs, state),
        lambda: run_original(model, inputs, state),
    ]
    if compiled:
        fast = torch.compile(run_original)
        calls.append(lambda: fast(model, inputs, state))
    with torch.no_grad():
        return Times(*_medians_us(calls, device, seconds))


def report(*, timed: bool, compiled: bool, fresh: bool = SPEC.fresh) -> dict[str, Any]:
    """Return the results on every workload, with the versions of today, as plain data."""
    device = torch.device(SPEC.device)
    found = [
        Verified(
            workload.name,
            error_of(workload, fresh=fresh),
            times_of(workload, compiled=compiled) if timed and workload.time_us else None,
        )
        for workload in SPEC.workloads
    ]
    torch_version, triton_version = versions()
    return {
        "torch": torch_version,
        "triton": triton_version,
        "gpu": gpu_of(device),
        "workloads": [asdict(each) for each in found],
    }


def _each_weight_changed(state: Sequence[Tensor]) -> Iterator[None]:
    """Change one floating-point tensor after the other, then put it back."""
    for tensor in state:
        if tensor.is_floating_point():
            before = tensor.clone()
            tensor.data.mul_(3)
            yield
            tensor.data.copy_(before)


def _medians_us(
    calls: Sequence[Callable[[], Any]], device: torch.device, seconds: float
) -> list[float]:
    """Return the median time of each call; the calls take turns."""
    samples: list[list[float]] = [[] for _ in calls]
    for call in calls:
        for _ in range(3):
            call()
    end = time.monotonic() + seconds * len(calls)
    while time.monotonic() < end or len(samples[0]) < 5:
        for call, taken in zip(calls, samples, strict=True):
            taken.append(_time_us(call, device))
    return [statistics.median(taken) for taken in samples]


def _time_us(call: Callable[[], Any], device: torch.device) -> float:
    if device.type != "cuda":
        begun = time.perf_counter()
        call()
        return (time.perf_counter() - begun) * 1e6
    before, after = (torch.Event(device, enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    before.record()
    call()
    after.record()
    torch.cuda.synchronize(device)
    return float(before.elapsed_time(after)) * 1e3


def main() -> None:
    """Print the results of today as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--no-times", action="store_true", help="verify only")
    parser.add_argument("--compile", action="store_true", help="time torch.compile, too")
    parser.add_argument("--fresh", action="store_true", help="use a new candidate at every call")
    given = parser.parse_args()
    fresh = given.fresh or SPEC.fresh
    print(json.dumps(report(timed=not given.no_times, compiled=given.compile, fresh=fresh)))


if __name__ == "__main__":
    main()
