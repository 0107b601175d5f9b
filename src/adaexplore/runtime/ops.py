"""The operations of torch that a compiled graph sees: the kernel, and its gradients."""

# ruff: noqa: ARG001 (the parameters are prescribed by torch)

# Without postponed annotations: torch reads the schema from the types.

from typing import Any

import torch
from torch import Tensor

from adaexplore.runtime.interface import write_back
from adaexplore.runtime.kernel import (
    device_of,
    forms_of_outputs,
    original_on,
    run_candidate,
    run_original,
    run_with_gradients,
)
from adaexplore.runtime.loaded import SPEC


@torch.library.custom_op(f"{SPEC.namespace}::forward", mutates_args=())
def forward(inputs: list[Tensor], state: list[Tensor]) -> list[Tensor]:
    """Run the kernel on inputs and the tensors of the original's state."""
    return run_candidate(inputs, state)


@forward.register_fake
def _(inputs: list[Tensor], state: list[Tensor]) -> list[Tensor]:
    device = device_of([*inputs, *state])
    return [
        torch.empty_strided(
            shape,
            stride,
            dtype=getattr(torch, dtype.partition(".")[2]),
            device=device if kind == device.type else kind,
        )
        for shape, stride, dtype, kind in forms_of_outputs(inputs)
    ]


@torch.library.custom_op(f"{SPEC.namespace}::backward", mutates_args=())
def backward(grads: list[Tensor], inputs: list[Tensor], state: list[Tensor]) -> list[Tensor]:
    """Return the gradients of inputs and state.

    By computing again, and differentiating, the kernel where it has a backward pass of its own, or
    else the original.
    """
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [
            t.detach().requires_grad_(t.is_floating_point() or t.is_complex())
            for t in (*inputs, *state)
        ]
        given, own = leaves[: len(inputs)], leaves[len(inputs) :]
        if SPEC.backward:
            outputs = run_with_gradients(given, own)
        else:
            outputs = run_original(original_on(device_of(leaves)), given, own)
        paired = [(out, g) for out, g in zip(outputs, grads, strict=True) if out.requires_grad]
        asked = [leaf for leaf in leaves if leaf.requires_grad]
        found = iter(
            torch.autograd.grad(
                [out for out, _ in paired],
                asked,
                [g for _, g in paired],
                allow_unused=True,
                materialize_grads=True,
            )
        )
        return [
            next(found).clone(memory_format=torch.preserve_format)
            if leaf.requires_grad
            else torch.zeros_like(leaf)
            for leaf in leaves
        ]


@backward.register_fake
def _(grads: list[Tensor], inputs: list[Tensor], state: list[Tensor]) -> list[Tensor]:
    return [torch.empty_like(t) for t in (*inputs, *state)]


def _keep(ctx: Any, inputs: tuple[list[Tensor], list[Tensor]], output: list[Tensor]) -> None:
    given, state = inputs
    ctx.count = len(given)
    ctx.save_for_backward(*given, *state)


def _gradients(ctx: Any, grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    saved = list(ctx.saved_tensors)
    inputs, state = saved[: ctx.count], saved[ctx.count :]
    found = backward(list(grads), inputs, state)
    return found[: ctx.count], found[ctx.count :]


forward.register_autograd(_gradients, setup_context=_keep)


def call(inputs: list[Tensor], state: list[Tensor]) -> list[Tensor]:
    """Run the kernel, and write to those inputs that a call of the original writes to.

    In eager training, the kernel's own backward pass follows and computes nothing again. A compiled
    graph sees the operation, whose backward has nothing but inputs and state.
    """
    eager = not torch.compiler.is_compiling() and torch.is_grad_enabled()
    if SPEC.backward and eager and any(t.requires_grad for t in (*inputs, *state)):
        return run_with_gradients(inputs, state)
    found: list[Tensor] = forward(inputs, state)
    # Not in the operation: TorchInductor (2.13) may compute a value after an operation has written
    # to the tensors that it is computed from.
    return write_back(SPEC.interface.writes, inputs, found)
