"""The checks that the launcher of Triton's CUDA driver makes before a kernel starts.

Follows `driver.c` and `driver.py` of Triton's NVIDIA backend. Pins `triton.runtime._allocation`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from triton.runtime._allocation import NullAllocator, _allocator

MAX_GRID = (2**31 - 1, 65_535, 65_535)
"""Blocks along x, y and z (CUDA programming guide, technical specifications)."""

MAX_BLOCKS_OF_A_CLUSTER = 16
"""The limit with the opt-in to non-portable sizes, which Triton takes for 16."""

NO_ALLOCATOR = (
    "Kernel requires a runtime memory allocation, but no allocator was set. "
    "Use triton.set_allocator to specify an allocator."
)
"""The message of Triton's `RuntimeError` at the launch of a kernel that needs global scratch."""


class RefusedLaunchError(RuntimeError):
    """A launch that CUDA refuses; on a GPU, Triton raises a `RuntimeError` for it."""


def checked_grid(kernel: str, given: Sequence[Any], num_ctas: int) -> tuple[int, int, int]:
    """Return the grid as the launcher reads it; (0, 0, 0) where the launcher silently does nothing.

    `num_ctas` is the number of blocks in a program. Raises `TypeError` for a size that is not an
    integer, and `RefusedLaunchError` beyond the limits.
    """
    x, y, z = map(operator.index, given)
    if x * y * z <= 0:
        return 0, 0, 0
    if num_ctas > MAX_BLOCKS_OF_A_CLUSTER:
        raise RefusedLaunchError(
            f"Triton Error [CUDA]: invalid argument: {kernel} has num_ctas={num_ctas}; "
            f"a cluster has at most {MAX_BLOCKS_OF_A_CLUSTER} blocks"
        )
    if any(not 0 < n <= limit for n, limit in zip((x * num_ctas, y, z), MAX_GRID, strict=True)):
        limits = " x ".join(f"{n:,}" for n in MAX_GRID)
        raise RefusedLaunchError(
            f"Triton Error [CUDA]: invalid argument: {kernel} has the grid {(x, y, z)}; "
            f"a GPU takes at most {limits} blocks"
        )
    if not 0 < (x * y * z) % 2**32 < 2**31:
        raise RefusedLaunchError(
            f"{kernel} has the grid {(x, y, z)}: Triton counts programs in 32 bits, and starts none"
        )
    return x, y, z


def has_allocator() -> bool:
    """Return True if `triton.set_allocator` was called, in this context."""
    return not isinstance(_allocator.get(), NullAllocator)
