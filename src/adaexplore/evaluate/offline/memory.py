"""The memory of interpreted kernels: the tensors of a launch and no other memory."""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn import Parameter
from triton._C.libtriton import interpreter as raw

Array = np.ndarray[Any, Any]
_LARGEST_TABLE = 1 << 16


class OutOfBoundsError(IndexError):
    """A load or store outside every tensor of the launch."""


class Memory(Protocol):
    """The loads and stores of the interpreter. Pointers are addresses, one for each lane."""

    def load(self, pointers: Array, mask: Array, other: Array, dtype: Any) -> Array:
        """Return the values at the pointers, and those of `other` where `mask` is false."""
        ...

    def store(self, pointers: Array, values: Array, mask: Array) -> None:
        """Write the values where `mask` is true."""
        ...

    def atomic_rmw(
        self, operation: Any, pointers: Array, values: Array, mask: Array, order: Any
    ) -> Array:
        """Read, combine and write; return the values read."""
        ...

    def atomic_cas(self, pointers: Array, expected: Array, values: Array, order: Any) -> Array:
        """Compare and swap; return the values read."""
        ...


class TensorMemory:
    """Real memory with checks: an address outside the storages of `values` is an error.

    An address inside the storage of a wrong tensor is not detected here; the comparison detects its
    result. If an address lies in no storage, storages whose addresses are passed as numbers (tables
    of pointers) are searched once.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)
        self._has_searched = False
        self._storages = _storages(tensors_in(self._values))
        self._arrange()

    def load(self, pointers: Array, mask: Array, other: Array, dtype: Any) -> Array:
        """See `Memory.load`."""
        self._check("load", pointers, mask, dtype.itemsize)
        return raw.load(pointers, mask, other, dtype)  # type: ignore[no-any-return]

    def store(self, pointers: Array, values: Array, mask: Array) -> None:
        """See `Memory.store`."""
        self._check("store", pointers, mask, values.dtype.itemsize)
        raw.store(pointers, values, mask)

    def atomic_rmw(
        self, operation: Any, pointers: Array, values: Array, mask: Array, order: Any
    ) -> Array:
        """See `Memory.atomic_rmw`."""
        self._check("atomic operation", pointers, mask, values.dtype.itemsize)
        return raw.atomic_rmw(operation, pointers, values, mask, order)  # type: ignore[no-any-return]

    def atomic_cas(self, pointers: Array, expected: Array, values: Array, order: Any) -> Array:
        """See `Memory.atomic_cas`."""
        everywhere = np.ones(pointers.shape, bool)
        self._check("atomic operation", pointers, everywhere, values.dtype.itemsize)
        return raw.atomic_cas(pointers, expected, values, order)  # type: ignore[no-any-return]

    def _check(self, what: str, pointers: Array, mask: Array, item_bytes: int) -> None:
        active = pointers[np.broadcast_to(mask, pointers.shape)]
        if active.size == 0:
            return
        if self._starts.size == 0:
            raise OutOfBoundsError(f"{what} in a launch without tensors")
        outside = self._outside(active, item_bytes)
        if outside.any() and not self._has_searched:
            self._add_storages_by_number()
            outside = self._outside(active, item_bytes)
        if outside.any():
            raise OutOfBoundsError(
                f"{what} out of bounds in {int(outside.sum())} of {active.size} lanes: "
                f"{self._distance(int(active[outside][0]))}"
            )

    def _outside(self, active: Array, item_bytes: int) -> Array:
        at = np.searchsorted(self._starts, active, side="right") - 1
        past: Array = active + np.uint64(item_bytes) > self._ends[np.maximum(at, 0)]
        return (at < 0) | past

    def _arrange(self) -> None:
        ordered = sorted(self._storages)
        self._starts = np.array([start for start, _ in ordered], np.uint64)
        self._ends = np.array([end for _, end in ordered], np.uint64)

    def _add_storages_by_number(self) -> None:
        """Search all live tensors for passed addresses; the search is slow, so it runs once."""
        self._has_searched = True
        numbers = sorted(_numbers_in(self._values))
        alive = (each for each in gc.get_objects() if type(each) in (torch.Tensor, Parameter))
        for start, end in _storages(t for t in alive if t.device.type == "cpu"):
            at = bisect_left(numbers, start)
            if at < len(numbers) and numbers[at] < end:
                self._storages.add((start, end))
        self._arrange()

    def _distance(self, address: int) -> str:
        """Describe an address by its distance to the nearest tensor."""
        starts, ends = self._starts.tolist(), self._ends.tolist()
        after = min((address - end for end in ends if address >= end), default=None)
        before = min((start - address for start in starts if address < start), default=None)
        if after is not None and (before is None or after <= before):
            return f"{after} bytes past the end of a tensor's memory"
        return f"{before} bytes before a tensor's memory"


def _storages(tensors: Iterable[torch.Tensor]) -> set[tuple[int, int]]:
    """Return the start and the end of each tensor's memory."""
    return {
        (storage.data_ptr(), storage.data_ptr() + storage.nbytes())
        for storage in (t.untyped_storage() for t in tensors if t.layout == torch.strided)
        if storage.nbytes() > 0
    }


def _numbers_in(values: Iterable[Any]) -> set[int]:
    """Return the integers among a launch's arguments, also those in its tensors of 64 bits."""
    numbers: set[int] = set()
    for value in values:
        if isinstance(value, tuple | list):
            numbers |= _numbers_in(value)
        elif isinstance(value, int):
            numbers.add(value)
    for tensor in tensors_in(values):
        if tensor.dtype in (torch.int64, torch.uint64) and tensor.numel() <= _LARGEST_TABLE:
            numbers.update(tensor.flatten().tolist())
    return numbers


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among the arguments of a launch, also in tuples and descriptors."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from tensors_in(value)
        elif hasattr(value, "base"):  # TensorDescriptor, TensorWrapper
            yield from tensors_in([value.base])
