"""Values that user code is given and returns: arguments, and the tensors inside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from adaexplore.core.errors import BadProblemError

NamedTensor = tuple[str, Tensor]
"""An output tensor with its place in the returned value, such as `output["loss"]`."""


_SCALARS = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}
_NOT_NUMBERS = {
    getattr(torch, name)
    for name in ("float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")
    if hasattr(torch, name)
}
"""Dtypes that PyTorch can store and cannot compute with."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The positional and keyword arguments of a call."""

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


InitArgs = Arguments
"""Arguments of the constructor."""

Inputs = Arguments
"""Arguments of `forward`."""


def check_inputs(name: str, origin: str, inputs: Inputs) -> None:
    """Raise `BadProblemError` for inputs from `origin` that no other process can be given."""
    for number, tensor in enumerate(tensors_of(inputs)):
        if form := _special_form(tensor):
            raise BadProblemError(
                f"{name}: input tensor {number} of {origin} is {form}, which cannot be shared with "
                "a candidate's process; give its parts as plain tensors, and join them in forward()"
            )


def check_outputs(name: str, outputs: list[NamedTensor], device: torch.device) -> None:
    """Raise `BadProblemError` for outputs of the reference `name` that verify nothing.

    There must be at least one tensor, each a plain one on the device of the inputs, and none that
    is NaN throughout.
    """
    if not outputs:
        raise BadProblemError(f"{name}: forward() returns no tensor; return at least one")
    for path, tensor in outputs:
        if form := _special_form(tensor):
            raise BadProblemError(
                f"{name}: {path} is {form}, which cannot be compared; return its parts, or "
                "to_dense(), in forward()"
            )
        if tensor.device.type != device.type:
            raise BadProblemError(
                f"{name}: {path} is on the {tensor.device.type.upper()}, and the inputs are on "
                f"{device.type}; make it there in forward()"
            )
        if tensor.numel() and bool(torch.isnan(tensor).all()):
            raise BadProblemError(
                f"{name}: {path} is NaN in all of its {tensor.numel()} elements; change the inputs "
                "or the module so that it has numbers to compare"
            )


def _special_form(tensor: Tensor) -> str:
    """Return what sets a tensor apart from a plain block of numbers, in words; empty if nothing."""
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.layout is not torch.strided:
        return f"a sparse tensor ({str(tensor.layout).partition('.')[2]})"
    if tensor.is_quantized or tensor.dtype in _NOT_NUMBERS:
        return f"a tensor of {str(tensor.dtype).partition('.')[2]}"
    return ""


def flatten_outputs(value: Any) -> list[NamedTensor]:
    """Return the tensors in a returned value in order, each with its path.

    Enters lists, tuples, named tuples, mappings and dataclasses; a `None` inside one is skipped,
    and a number beside tensors becomes a tensor of one element. Raises `TypeError`, with the path,
    for anything else that is not a tensor.
    """
    leaves = leaves_of(value, "output")
    device = next((leaf.device for _, leaf in leaves if isinstance(leaf, Tensor)), None)
    flat = []
    for path, leaf in leaves:
        if isinstance(leaf, Tensor):
            flat.append((path, leaf))
        elif device is None or type(leaf) not in _SCALARS:
            raise TypeError(f"{path} is {type_name(leaf)}; return tensors")
        else:
            flat.append((path, torch.full((), leaf, dtype=_SCALARS[type(leaf)], device=device)))
    return flat


def leaves_of(value: Any, path: str) -> list[tuple[str, Any]]:
    """Return what a value holds and its path, but for containers and `None` inside one."""
    if isinstance(value, Mapping):
        by_key = sorted(value.items(), key=lambda item: str(item[0]))  # equal whatever the order
        parts = [(f'{path}["{key}"]', item) for key, item in by_key]
    elif _is_namedtuple(value):
        parts = [(f"{path}.{key}", item) for key, item in value._asdict().items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif _is_dataclass_instance(value):
        parts = [(f"{path}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    else:
        return [(path, value)]
    return [leaf for where, item in parts if item is not None for leaf in leaves_of(item, where)]


def map_tensors(fn: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    """Return the same arguments with `fn` applied to every tensor, at any depth."""
    args, kwargs = _map([inputs.args, inputs.kwargs], fn)
    return Inputs(args, kwargs)


def tensors_of(inputs: Inputs) -> list[Tensor]:
    """Return every tensor among the arguments, in order."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(note, inputs)
    return found


def _map(value: Any, fn: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return fn(value)
    if isinstance(value, dict):
        return {key: _map(item, fn) for key, item in value.items()}
    if _is_namedtuple(value):
        return type(value)(*(_map(item, fn) for item in value))
    if isinstance(value, list | tuple):
        return type(value)([_map(item, fn) for item in value])
    if _is_dataclass_instance(value):
        fields = [f.name for f in dataclasses.fields(value) if f.init]
        return dataclasses.replace(value, **{f: _map(getattr(value, f), fn) for f in fields})
    return value


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_dataclass_instance(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def type_name(value: Any) -> str:
    """Return the type of a value in words, for messages."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
