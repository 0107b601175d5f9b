"""Memory without data, which counts the bytes that a launch moves in a few of its programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from adaexplore.evaluate.offline.memory import Array, tensors_in

SECTOR_BYTES = 32
"""The least that a GPU moves: a quarter of a cache line, on every target."""


class TrafficMemory:
    """A `Memory` (see `memory`) of tensors without data, which counts the accessed sectors.

    Loads return the values of masked lanes, usually zeros. So if a kernel loads indices, the
    traffic that depends on them is the traffic of index 0. A sector counts once per load or store
    of a block, because the accesses of its threads are coalesced. Lanes outside the tensors do not
    count.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        found = {}
        for tensor in tensors_in(values):
            start = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
            found[start] = tensor.untyped_storage().nbytes()
        starts = sorted(found)
        self._starts = np.array(starts, np.uint64)
        self._bytes = np.array([found[start] for start in starts], np.uint64)
        self._sectors = np.zeros(len(starts), np.int64)

    def moved_bytes(self, share: float) -> tuple[float, float]:
        """Return (bytes from and to the memory, bytes from and to the cache) of a whole launch.

        `share` is the share of its programs that were run. A tensor moves from or to the memory at
        most once; later accesses find it in the cache.
        """
        moved = self._sectors * SECTOR_BYTES / share
        return float(np.minimum(moved, self._bytes).sum()), float(moved.sum())

    def load(self, pointers: Array, mask: Array, other: Array, dtype: Any) -> Array:
        """See `memory.Memory.load`."""
        self._count(pointers, mask)
        return np.array(np.broadcast_to(other, pointers.shape), dtype)

    def store(self, pointers: Array, values: Array, mask: Array) -> None:  # noqa: ARG002
        """See `memory.Memory.store`."""
        self._count(pointers, mask)

    def atomic_rmw(
        self,
        operation: Any,  # noqa: ARG002
        pointers: Array,
        values: Array,
        mask: Array,
        order: Any,  # noqa: ARG002
    ) -> Array:
        """See `memory.Memory.atomic_rmw`."""
        self._count(pointers, mask)
        self._count(pointers, mask)
        return np.zeros(pointers.shape, values.dtype)

    def atomic_cas(self, pointers: Array, expected: Array, values: Array, order: Any) -> Array:  # noqa: ARG002
        """See `memory.Memory.atomic_cas`; the swap always succeeds, so that no kernel waits."""
        self._count(pointers, np.ones(pointers.shape, bool))
        return expected.copy()

    def _count(self, pointers: Array, mask: Array) -> None:
        active = pointers[np.broadcast_to(mask, pointers.shape)]
        if active.size == 0 or self._starts.size == 0:
            return
        sectors = np.unique(active // np.uint64(SECTOR_BYTES)) * np.uint64(SECTOR_BYTES)
        # The first sector of a tensor may begin before it.
        at = np.searchsorted(self._starts, sectors + np.uint64(SECTOR_BYTES - 1), side="right") - 1
        inside = (at >= 0) & (sectors < (self._starts + self._bytes)[np.maximum(at, 0)])
        self._sectors += np.bincount(at[inside], minlength=self._starts.size)
