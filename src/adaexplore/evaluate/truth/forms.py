"""Forms of outputs, and of captured inputs: a source does not show what a file holds."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from adaexplore.core.problem import Workload
from adaexplore.core.verdict.facts import InputForm, OutputForm
from adaexplore.sandbox.user.training import TrainingStep
from adaexplore.sandbox.user.values import Inputs, NamedTensor, leaves_of

_MOST = 40  # of a call; a longer list helps nobody
_ENOUGH = 1 << 20  # elements of a tensor to look at


def output_forms(outputs: Iterable[NamedTensor]) -> tuple[OutputForm, ...]:
    """Return the form of each output."""
    return tuple(OutputForm(path, tuple(out.shape), _dtype(out)) for path, out in outputs)


def input_forms(model: nn.Module, inputs: Inputs, workload: Workload) -> tuple[InputForm, ...]:
    """Return the form of each argument of `forward`; empty where the inputs come from no file."""
    if not workload.file:
        return ()
    called = model.model if isinstance(model, TrainingStep) else model
    parameters = inspect.signature(called.forward).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names += [f"argument {i}" for i in range(len(names), len(inputs.args))]
    named = {**dict(zip(names, inputs.args, strict=False)), **inputs.kwargs}
    leaves = [leaf for name, value in named.items() for leaf in leaves_of(value, name)]
    return tuple(_form(path, leaf) for path, leaf in leaves[:_MOST])


def _form(path: str, value: object) -> InputForm:
    if not isinstance(value, Tensor):
        return InputForm(path, None, type(value).__name__, values=str(value))
    strides = () if value.is_contiguous() else value.stride()
    return InputForm(path, tuple(value.shape), _dtype(value), strides, _values(value))


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).partition(".")[2]


def _values(tensor: Tensor) -> str:
    """Return what the elements are like, in words; of very many, what a part of them is like."""
    if tensor.is_meta or not tensor.numel() or tensor.is_complex():
        return ""
    try:
        part = tensor.detach().flatten()[:: max(tensor.numel() // _ENOUGH, 1)].double()
    except RuntimeError:  # a form without numbers, or no room to look at them
        return ""
    if tensor.dtype == torch.bool:
        return f"{part.mean().item():.0%} true"
    low, high = part.min().item(), part.max().item()
    if low == high:
        return f"all {low:g}"
    if not tensor.is_floating_point():
        return f"{low:g} to {high:g}"
    finite = part[part.isfinite()]
    if not finite.numel():
        return "nothing finite"
    size = (
        f"rms {finite.square().mean().sqrt().item():.2g}, at most {finite.abs().max().item():.2g}"
    )
    rest = 1.0 - finite.numel() / part.numel()
    return f"{size}, {rest:.0%} not finite" if rest else size
