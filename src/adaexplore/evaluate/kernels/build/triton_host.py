"""Triton's work on the host before and between launches, kept out of the GPU's time.

Pins `triton.backends.nvidia.driver`: `CudaLauncher` and `CudaDriver.get_benchmarker`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

_WARMUP_MS, _TIMED_MS = 5, 25


def build_launcher(source: Any, metadata: Any) -> None:
    """Compile a kernel's C launcher stub into the cache; newer Tritons have no such stub."""
    import triton.backends.nvidia.driver as nvidia

    if hasattr(nvidia, "make_launcher"):
        nvidia.CudaLauncher(source, metadata)


def tune_briefly() -> None:
    """Make autotuners in this process time a configuration for 25 ms instead of 100.

    25 ms suffice for a choice, and the device is held during autotuning. An autotuner with its own
    benchmark function or durations keeps them.
    """
    import triton.backends.nvidia.driver as nvidia
    from triton.testing import do_bench

    def benchmarker(_: Any) -> Callable[..., Any]:
        return partial(do_bench, warmup=_WARMUP_MS, rep=_TIMED_MS)

    nvidia.CudaDriver.get_benchmarker = benchmarker
