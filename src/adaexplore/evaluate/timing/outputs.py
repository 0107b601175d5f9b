"""Outputs of a timed call: plain tensors, ready to be used."""

from __future__ import annotations

from typing import Any

import torch

from adaexplore.sandbox.user.values import NamedTensor, flatten_outputs

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def finished(value: Any) -> list[NamedTensor]:
    """The output tensors of a call, to be taken within the timed window.

    So a container or a tensor class that works when it is looked at does so there, and one number
    that stands for many is written out. Raises `TypeError` for what is no plain tensor.
    """
    outputs = flatten_outputs(value)
    for path, tensor in outputs:
        if type(tensor) not in _PLAIN:
            raise TypeError(f"{path} is of the class {type(tensor).__name__}; return plain tensors")
    return [(path, _written_out(tensor)) for path, tensor in outputs]


def _written_out(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or where several of its elements share their memory, a copy."""
    shares = any(s == 0 and n > 1 for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.contiguous() if shares else tensor
