"""Triton's work on the host before and around launches, kept off the GPU's time.

Pins `triton.backends.nvidia.driver`: `CudaLauncher` and `CudaDriver.get_benchmarker`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

_TRIED_MS, _TIMED_MS = 5, 25


def build_launcher(source: Any, metadata: Any) -> None:
    """Compiles the C stub that starts a kernel into the cache; newer Tritons have no such stub."""
    import triton.backends.nvidia.driver as nvidia

    if hasattr(nvidia, "make_launcher"):
        nvidia.CudaLauncher(source, metadata)


def tune_briefly() -> None:
    """Has autotuners in this process time a configuration for 25 ms instead of 100.

    That is enough to choose by, and the device is held all the while. One that brings a benchmark
    or times of its own keeps them.
    """
    import triton.backends.nvidia.driver as nvidia
    from triton.testing import do_bench

    def benchmarker(_: Any) -> Callable[..., Any]:
        return partial(do_bench, warmup=_TRIED_MS, rep=_TIMED_MS)

    nvidia.CudaDriver.get_benchmarker = benchmarker
