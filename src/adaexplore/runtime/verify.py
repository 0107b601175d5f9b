"""Verification and timing of the kernel on this machine: `python -m PACKAGE.verify` prints JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from adaexplore.runtime import ops
from adaexplore.runtime.compare import relative_error
from adaexplore.runtime.inputs import inputs_of, variation_of
from adaexplore.runtime.kernel import (
    original_on,
    run_candidate,
    run_original,
    state_of_package,
)
from adaexplore.runtime.loaded import SPEC
from adaexplore.runtime.spec import VerifiedWorkload, gpu_of, versions
from adaexplore.runtime.timing import times_of

_SEEDS = (1, 2)


@torch.no_grad()
def error_of(workload: VerifiedWorkload) -> float:
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
        found = run_candidate(inputs, state)
        worst = max(worst, relative_error(found, run_original(model, inputs, state)))
    for _ in _each_weight_changed(state):
        found = run_candidate(calls[0], state)
        worst = max(worst, relative_error(found, run_original(model, calls[0], state)))
    return max(worst, gradient_error(calls[0], state)) if SPEC.backward else worst


@torch.enable_grad()
def gradient_error(inputs: Sequence[Tensor], state: Sequence[Tensor]) -> float:
    """Return the relative error of the gradients of inputs and state, given those of the outputs.

    In eager mode and as a compiled graph has them.
    """
    given = [t.detach().requires_grad_(t.is_floating_point()) for t in (*inputs, *state)]
    count, model = len(inputs), original_on(torch.device(SPEC.device))
    expected = _gradients(run_original(model, given[:count], given[count:]), given)
    return max(
        relative_error(_gradients(run(given[:count], given[count:]), given), expected)
        for run in (ops.call, ops.forward)
    )


def _gradients(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> list[Tensor]:
    ends = [out for out in outputs if out.requires_grad]
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    if not ends or not asked:
        return []
    upstream = [
        torch.cos(torch.arange(out.numel(), device=out.device)).reshape(out.shape).to(out.dtype)
        for out in ends
    ]
    found = torch.autograd.grad(ends, asked, upstream, allow_unused=True, materialize_grads=True)
    return list(found)


def report() -> dict[str, Any]:
    """Return errors and times of every workload, with the versions of today, as plain data."""
    torch_version, triton_version = versions()
    return {
        "torch": torch_version,
        "triton": triton_version,
        "gpu": gpu_of(torch.device(SPEC.device)),
        "workloads": [
            {"workload": each.name, "error": error_of(each), **asdict(times_of(each))}
            for each in SPEC.workloads
        ],
    }


def _each_weight_changed(state: Sequence[Tensor]) -> Iterator[None]:
    """Change one floating-point tensor after the other, then put it back."""
    for tensor in state:
        if tensor.is_floating_point():
            before = tensor.clone()
            tensor.data.mul_(3)
            yield
            tensor.data.copy_(before)


if __name__ == "__main__":
    print(json.dumps(report()))
