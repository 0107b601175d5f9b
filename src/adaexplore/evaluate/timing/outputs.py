"""Outputs of a timed call: plain tensors, ready to be copied to the judge's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from adaexplore.evaluate.wire.tensors import dense_strides
from adaexplore.sandbox.user.values import NamedTensor, flatten_outputs

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def finished(value: Any) -> list[NamedTensor]:
    """Return the output tensors of a baseline's call, each dense; part of the timed window.

    A container or a tensor class that works when it is looked at does so there. An output that
    shares memory among elements or leaves gaps is written out. Raises `TypeError` for anything that
    is not a plain tensor.
    """
    return [(path, _written_out(tensor)) for path, tensor in _plain(value)]


def finished_for(value: Any, places: Sequence[torch.Tensor]) -> list[NamedTensor]:
    """Return the output tensors of a candidate's call, each in the layout of its place.

    See `finished`. An output in another layout is written out: the timed window holds that copy,
    and the copy to the place, which follows, takes the same time for all. Raises `TypeError` also
    where the outputs are of another number, shape, dtype or device than their places.
    """
    outputs = _plain(value)
    if len(outputs) != len(places):
        raise TypeError(f"{len(outputs)} output tensors in a timed call; {len(places)} before")
    return [
        (path, _in_form_of(place, path, tensor))
        for (path, tensor), place in zip(outputs, places, strict=True)
    ]


def _plain(value: Any) -> list[NamedTensor]:
    outputs = flatten_outputs(value)
    for path, tensor in outputs:
        if type(tensor) not in _PLAIN:
            raise TypeError(f"{path} is of the class {type(tensor).__name__}; return plain tensors")
    return outputs


def _written_out(tensor: torch.Tensor) -> torch.Tensor:
    is_dense = dense_strides(tensor.shape, tensor.stride()) is not None
    return tensor if is_dense else tensor.contiguous()


def _in_form_of(place: torch.Tensor, path: str, tensor: torch.Tensor) -> torch.Tensor:
    if tensor.shape != place.shape or tensor.dtype != place.dtype or tensor.device != place.device:
        got, want = _form(tensor), _form(place)
        raise TypeError(f"{path} is {got} in a timed call; it was {want} when it was verified")
    same_order = dense_strides(tensor.shape, tensor.stride()) == place.stride()
    return tensor if same_order else torch.empty_like(place).copy_(tensor)


def _form(tensor: torch.Tensor) -> str:
    shape = "x".join(map(str, tensor.shape)) or "a number"
    return f"{shape} of {tensor.dtype} on {tensor.device}"
