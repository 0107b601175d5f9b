"""Casts to narrower floating-point numbers inside a reference, undone where the truth is computed.

Many references cast to float32 and say by it only that nothing narrower will do. Run on float64
inputs, they would round to float32 all the same, and that would pass for truth.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

MARK = "CASTS_ARE_PRECISION"
"""A problem's module that defines this as True casts for precision alone, and never to round."""

_CASTING = {
    Tensor.float: torch.float32,
    Tensor.half: torch.float16,
    Tensor.bfloat16: torch.bfloat16,
}
FLOAT32 = frozenset({torch.float32})
NARROW = frozenset(_CASTING.values())
_OF_BITS = {Tensor.view}  # the numbers behind the same bits
_DTYPE_OF = Tensor.dtype.__get__  # type: ignore[attr-defined]
_ADDRESSES = {Tensor.data_ptr, Tensor.untyped_storage}


def casts_for_precision(module: ModuleType) -> bool:
    """Return whether a problem's module says that its casts round nothing on purpose."""
    return getattr(module, MARK, False) is True


class WideCasts(TorchFunctionMode):
    """Makes float64 of every cast to, and every new tensor in, a dtype of `narrow`.

    With `told`, tensors of float64 tell that dtype, for a reference that checks it. Their addresses
    are refused then: who reads memory by address believes the dtype.
    """

    def __init__(
        self, narrow: frozenset[torch.dtype] = NARROW, told: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self._narrow = narrow
        self._told = told

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        named = kwargs or {}
        if self._told is not None and func in _ADDRESSES:
            raise TypeError(f"the address of a tensor of float64 that tells {self._told}")
        if func == _DTYPE_OF:
            dtype = func(*args, **named)
            return self._told or dtype if dtype is torch.float64 else dtype
        if _CASTING.get(func) in self._narrow:
            return args[0].double()
        if func in _OF_BITS:
            return func(*args, **named)
        wide = {key: self._wide(value) for key, value in named.items()}
        return func(*map(self._wide, args), **wide)

    def _wide(self, value: Any) -> Any:
        is_narrow = isinstance(value, torch.dtype) and value in self._narrow
        return torch.float64 if is_narrow else value
