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


@dataclass(frozen=True, slots=True)
class Arguments:
    """The positional and keyword arguments of a call."""

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


InitArgs = Arguments
"""Arguments of the constructor."""

Inputs = Arguments
"""Arguments of `forward`."""


def check_outputs(name: str, outputs: list[NamedTensor]) -> None:
    """Raise `BadProblemError` for outputs of the reference `name` that verify nothing.

    There must be at least one tensor, and none that is empty or holds NaN.
    """
    if not outputs:
        raise BadProblemError(f"{name}: forward() returns no tensor; return at least one")
    for path, tensor in outputs:
        if tensor.numel() == 0:
            raise BadProblemError(
                f"{name}: {path} is empty (shape {tuple(tensor.shape)}); "
                "every output needs at least one element"
            )
        nans = int(torch.isnan(tensor).sum())
        if nans:
            raise BadProblemError(
                f"{name}: {path} is NaN in {nans} of {tensor.numel()} elements "
                f"({nans / tensor.numel():.1%}); change the inputs or the module so that none is"
            )


def flatten_outputs(value: Any, path: str = "output") -> list[NamedTensor]:
    """Return the tensors in a returned value in order, each with its path.

    Enters lists, tuples, named tuples, mappings and dataclasses; a `None` inside one is skipped.
    Raises `TypeError`, with the path, for anything else that is not a tensor.
    """
    if isinstance(value, Tensor):
        return [(path, value)]
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
        raise TypeError(f"{path} is {type_name(value)}; return tensors")
    return [
        leaf for where, item in parts if item is not None for leaf in flatten_outputs(item, where)
    ]


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
