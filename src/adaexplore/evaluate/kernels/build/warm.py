"""Preparations that the fork server makes once for all workers."""

from __future__ import annotations

from torch._inductor.async_compile import AsyncCompile

_TRIVIAL = """
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(float* out) { at::vec::Vectorized<float>(1.0f).store(out, 1); }
"""


def warm_cpp_compiler() -> None:
    """Has Inductor's C++ loader probe the instruction sets and precompile its header.

    Both take several seconds and are remembered by the process, hence by its forks.
    """
    AsyncCompile().cpp_pybinding(["float*"], _TRIVIAL)
