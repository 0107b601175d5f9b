"""Operations, elements, bytes and FLOPs of a module, counted on meta tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

_ALLOCATIONS = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
"""Operations that allocate memory and do not access it."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of torch that does work (views and allocations do none).

    `elements` counts the elements written, `bytes` the bytes that the operation must at least read
    and write. `flops` counts the FLOPs of a matrix product or convolution (2 for a multiply-add)
    and is 0 for other operations. `dtype` is the dtype of the result.
    """

    elements: int
    bytes: int
    flops: int
    dtype: torch.dtype


class OpCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A list of the operations that reach the dispatcher while the mode is entered.

    It works on tensors of any device; with meta tensors nothing is computed. A composite operation
    (`linear`, `matmul`, attention on the meta device) is listed as its parts.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops: list[Op] = []

    @property
    def elements(self) -> int:
        """Elements written by all operations."""
        return sum(op.elements for op in self.ops)

    @property
    def flops(self) -> int:
        """FLOPs of all matrix products and convolutions."""
        return sum(op.flops for op in self.ops)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operation and record it."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        results = _tensors(out)
        if results and not _is_free(func):
            formula = flop_registry.get(func._overloadpacket)
            self.ops.append(
                Op(
                    elements=sum(t.numel() for t in results),
                    bytes=sum(bytes_of(t) for t in (*_tensors((args, kwargs)), *results)),
                    flops=int(formula(*args, **kwargs, out_val=out)) if formula else 0,
                    dtype=results[0].dtype,
                )
            )
        return out


class _NoValues(TorchFunctionMode):
    """A mode in which code that reads single values runs on meta tensors, which have no values.

    A read returns an arbitrary value of its type. This suffices for a rate or a flag. For a size,
    the shapes that follow are wrong; the caller detects them or tolerates them.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if args and isinstance(args[0], torch.Tensor) and args[0].is_meta:
            tensor = args[0]
            if func in (torch.Tensor.item, torch.Tensor.__float__):
                return 0.5 if tensor.is_floating_point() else 1
            if func in (torch.Tensor.__int__, torch.Tensor.__index__):
                return 1
            if func is torch.Tensor.__bool__:
                return True
            if func is torch.Tensor.tolist:
                return torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu").tolist()
        return func(*args, **(kwargs or {}))


@contextmanager
def without_values() -> Iterator[None]:
    """Let user code in the body run on meta tensors, also code that reads their values."""
    with _NoValues():
        yield


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _is_free(func: Any) -> bool:
    if func._overloadpacket.__name__ in _ALLOCATIONS:
        return True
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info and not r.alias_info.is_write for r in returns)


def bytes_of(t: torch.Tensor) -> int:
    """Return the memory that a tensor covers; elements repeated by `expand` count once."""
    sizes = zip(t.shape, t.stride(), strict=True)
    return math.prod(size if stride else min(size, 1) for size, stride in sizes) * t.itemsize
