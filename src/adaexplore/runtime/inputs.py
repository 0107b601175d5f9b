"""The inputs of verified workloads, drawn again or read from the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from adaexplore.runtime.interface import Interface, tensors_of_call
from adaexplore.runtime.kernel import import_source, own_randomness
from adaexplore.runtime.loaded import HERE, SPEC
from adaexplore.runtime.spec import Form, VerifiedWorkload


def inputs_of(
    workload: VerifiedWorkload, device: torch.device, seed: int | None = None
) -> list[Tensor]:
    """Return the tensors of a workload's inputs, with their verified forms.

    Drawn inputs follow the seed; captured ones are the same under every seed.
    """
    if workload.file:
        stored = torch.load(HERE / workload.file, weights_only=True)
        tensors = list(stored["args"])
    else:
        with own_randomness(device), device, torch.no_grad():
            torch.manual_seed(SPEC.seed if seed is None else seed)
            tensors = _tensors(eval(workload.draw, vars(import_source("original"))))
    return [_placed(t.detach(), f, device) for t, f in zip(tensors, workload.inputs, strict=True)]


def variation_of(inputs: list[Tensor], seed: int) -> list[Tensor]:
    """Return inputs like these with other values: floating-point tensors in another order."""
    generator = torch.Generator().manual_seed(seed)
    return [_shuffled(t, generator) if t.is_floating_point() else t for t in inputs]


def _shuffled(tensor: Tensor, generator: torch.Generator) -> Tensor:
    order = torch.randperm(tensor.numel(), generator=generator).to(tensor.device)
    mixed = tensor.reshape(-1)[order].reshape(tensor.shape)
    return torch.empty_like(tensor).copy_(mixed)


def _tensors(drawn: Any) -> list[Tensor]:
    match drawn:
        case Tensor():
            args, kwargs = [drawn], {}
        case Mapping():
            args, kwargs = [], dict(drawn)
        case _:
            args, kwargs = list(drawn), {}
    interface: Interface = SPEC.interface
    tensors = tensors_of_call(interface, args, kwargs)
    if tensors is None:
        raise ValueError("the original's file gives other inputs than verified")
    return tensors


def _placed(tensor: Tensor, form: Form, device: torch.device) -> Tensor:
    shape, stride, _, kind = form
    where = device if kind == device.type else torch.device(kind)
    if tensor.device == where and tensor.stride() == stride:
        return tensor
    made = torch.empty_strided(shape, stride, dtype=tensor.dtype, device=where)
    return made.copy_(tensor)
