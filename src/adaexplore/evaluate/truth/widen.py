"""A module in float64 for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn


@contextmanager
def limits_of(dtype: torch.dtype) -> Iterator[None]:
    """Let `torch.finfo` of float64 tell the limits of another dtype: a reference's own epsilon."""
    limits: Any = torch.finfo

    def own(of: torch.dtype | None = None) -> Any:
        of = of or torch.get_default_dtype()
        return limits(dtype if of is torch.float64 else of)

    with patch.object(torch, "finfo", own):
        yield


@contextmanager
def widened(model: nn.Module) -> Iterator[nn.Module]:
    """The model with every floating-point tensor in float64; afterwards they are put back.

    In place and not on a copy: functions that a module keeps may refer to the module itself. Plain
    attributes that are tensors (a hidden state, say) are widened with the parameters and buffers.
    What the body changes in them is lost.
    """
    parameters = [p for p in model.parameters() if p.is_floating_point()]
    narrow = [p.data for p in parameters]
    homes = [home for m in model.modules() for home in (m._buffers, vars(m))]
    before = [{k: v for k, v in home.items() if isinstance(v, Tensor)} for home in homes]
    try:
        for parameter in parameters:
            parameter.data = parameter.data.double()
        for home, tensors in zip(homes, before, strict=True):
            home.update({k: _wide(v) for k, v in tensors.items()})
        yield model
    finally:
        for parameter, data in zip(parameters, narrow, strict=True):
            parameter.data = data
        for home, tensors in zip(homes, before, strict=True):
            home.update(tensors)


def _wide(tensor: Tensor) -> Tensor:
    """A copy, since the body may write to it."""
    return tensor.to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True)
