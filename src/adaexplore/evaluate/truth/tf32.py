"""TF32 on machines that do not have it: products of fp32 with their operands rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_OPERANDS = {
    _aten.mm: (0, 1),
    _aten.bmm: (0, 1),
    _aten.addmm: (1, 2),
    _aten.addbmm: (1, 2),
    _aten.baddbmm: (1, 2),
    _aten.convolution: (0, 1),
}
"""Where each operation has the operands of its product among its arguments."""


class EmulatedTf32(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Has matrix products and convolutions round fp32 operands to TF32, as cuBLAS and cuDNN do."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """One operation."""
        operands = _OPERANDS.get(func._overloadpacket, ())
        rounded = [_rounded(arg) if i in operands else arg for i, arg in enumerate(args)]
        return func(*rounded, **(kwargs or {}))


def _rounded(value: torch.Tensor) -> torch.Tensor:
    """The nearest values with 10 bits of mantissa; what is not fp32 as it is."""
    if value.dtype != torch.float32:
        return value
    bits = value.contiguous().view(torch.int32)
    nearest = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(value.isfinite(), nearest, value)
