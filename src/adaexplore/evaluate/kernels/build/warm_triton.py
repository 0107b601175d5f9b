"""Preparations of Triton that the fork server makes once for all workers."""

from __future__ import annotations

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaUtils
from triton.compiler import ASTSource

from adaexplore.evaluate.kernels.capture import CapturedKernel
from adaexplore.evaluate.kernels.resources import compile_for
from adaexplore.evaluate.kernels.targets import TARGETS


@triton.jit  # type: ignore[untyped-decorator]
def _trivial(out, count: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out + tl.arange(0, count), 1.0)


def warm_for_targets() -> None:
    """Compile a kernel for every target: the first compilation of a process takes a second."""
    for target in TARGETS.values():
        compile_for(CapturedKernel(_source(), {}, "trivial"), target)


def warm_for_gpu() -> None:
    """Trigger Triton's set-up at a process's first compilation and first launch.

    Triton hashes itself, reads its assembler's version, and compiles its C extension into the cache
    that workers start with a copy of. Without a GPU, nothing is done.
    """
    if Path("/dev/nvidiactl").exists():
        CudaUtils()
        triton.compile(_source(), target=GPUTarget("cuda", 90, 32))


def _source() -> ASTSource:
    return ASTSource(_trivial, {"out": "*fp32", "count": "constexpr"}, {"count": 128})
