"""A module in float64 for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

_OF_EVERY_MODULE = frozenset(vars(nn.Module()))


@contextmanager
def limits_noted(noted: list[torch.dtype]) -> Iterator[None]:
    """Note the dtypes of which the body asks `torch.finfo` for the limits."""
    limits: Any = torch.finfo

    def noting(of: torch.dtype | None = None) -> Any:
        noted.append(of or torch.get_default_dtype())
        return limits(noted[-1])

    with patch.object(torch, "finfo", noting):
        yield


@contextmanager
def limits_of(noted: Sequence[torch.dtype], *, of_float32: bool) -> Iterator[None]:
    """Let `torch.finfo` of float64 tell the limits of the dtypes that were noted, in their order.

    So a reference has its own epsilon in a run in float64. With `of_float32`, `torch.rms_norm`
    without an epsilon takes that of float32, as PyTorch does for all narrower dtypes.
    """
    limits: Any = torch.finfo
    norm: Any = torch.rms_norm
    left = iter(noted)

    def own(of: torch.dtype | None = None) -> Any:
        of, known = of or torch.get_default_dtype(), next(left, None)
        return limits(known if known and of is torch.float64 else of)

    def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
        eps = limits(torch.float32).eps if eps is None and of_float32 else eps
        return norm(x, shape, weight, eps)

    with patch.object(torch, "finfo", own), patch.object(torch, "rms_norm", rms_norm):
        yield


@contextmanager
def widened(model: nn.Module) -> Iterator[nn.Module]:
    """The model with every floating-point tensor in float64; afterwards they are put back.

    In place and not on a copy: functions that a module keeps may refer to the module itself. Plain
    attributes that are tensors (a hidden state, say), or lists and dicts of them, are widened with
    the parameters and buffers. What the body changes in them is lost.
    """
    parameters = [p for p in model.parameters() if p.is_floating_point() or p.is_complex()]
    narrow = [p.data for p in parameters]
    homes = [home for m in model.modules() for home in (m._buffers, vars(m))]
    before = [{k: v for k, v in home.items() if _is_plain(k, v)} for home in homes]
    wide = _Wide(parameters)
    try:
        for parameter in parameters:
            parameter.data = _widened(parameter.data)
        for home, tensors in zip(homes, before, strict=True):
            home.update({k: wide(v) for k, v in tensors.items()})
        yield model
    finally:
        for parameter, data in zip(parameters, narrow, strict=True):
            parameter.data = data
        for home, tensors in zip(homes, before, strict=True):
            home.update(tensors)


def _is_plain(name: str, value: Any) -> bool:
    """Return True for a tensor, or a list, tuple or dict with some, that no module keeps itself."""
    if name in _OF_EVERY_MODULE:
        return False
    if type(value) is dict:
        value = list(value.values())
    held = value if type(value) in (list, tuple) else (value,)
    return any(isinstance(each, Tensor) for each in held)


class _Wide:
    """Copies plain attributes in float64; parameters of the model, which are wide, stay theirs."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = {id(parameter) for parameter in parameters}

    def __call__(self, value: Any) -> Any:
        if type(value) is dict:
            return {key: self(each) for key, each in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self, value))
        if not isinstance(value, Tensor) or id(value) in self._parameters:
            return value
        return _widened(value)


def _widened(tensor: Tensor) -> Tensor:
    """A copy, since the body may write to it."""
    if tensor.is_complex():
        return tensor.to(torch.complex128, copy=True)
    return tensor.to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True)
