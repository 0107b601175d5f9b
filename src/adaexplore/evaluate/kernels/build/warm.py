"""Preparations that the fork server makes once for all workers."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from pathlib import Path

import torch
from torch._inductor import codecache, config, cpp_builder, cpu_vec_isa
from torch._inductor.async_compile import AsyncCompile

from adaexplore.evaluate.kernels.build.compile_cache import own_folder

_TRIVIAL = """
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(float* out) { at::vec::Vectorized<float>(1.0f).store(out, 1); }
"""


def warm_cpp_compiler(home: Path | None = None) -> Path | None:
    """Make Inductor's C++ loader probe the instruction sets and precompile its header.

    Both take several seconds. The process and its forks remember them. Where it is safe, the user's
    cache keeps them for the next process. Returns the cache's folder, which workers must be able to
    read.
    """
    folder = own_folder("toolchain", home)
    if folder is not None:
        header_folder = folder / "headers"
        codecache._HEADER_DIR = str(header_folder)
        codecache._HEADER_LOCK_DIR = str(header_folder / "locks")
        _probe_instruction_sets(folder / f"all-instruction-sets-{_toolchain()}")
    AsyncCompile().cpp_pybinding(["float*"], _TRIVIAL)
    return folder


def _probe_instruction_sets(known_to_work: Path) -> None:
    """Probe the instruction sets, unless the compiler is known to support all sets of this CPU.

    Extensions of some sets are probed in any case.
    """
    if known_to_work.exists():
        config.cpp.vec_isa_ok = True
        return
    probed = cpu_vec_isa.valid_vec_isa_list()
    cpu_vec_isa.valid_vec_isa_list.cache_clear()
    with config.patch({"cpp.vec_isa_ok": True}):
        if cpu_vec_isa.valid_vec_isa_list() == probed:
            known_to_work.touch()
    cpu_vec_isa.valid_vec_isa_list.cache_clear()


def _toolchain() -> str:
    """Return a hash of the CPU, the C++ compiler and PyTorch."""
    compiler = subprocess.run(
        [cpp_builder.get_cpp_compiler(), "--version"], capture_output=True, text=True, check=True
    ).stdout
    flags = re.search(r"^(flags|Features)\s*:.*", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    parts = (platform.machine(), flags and flags[0], compiler, torch.__version__)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
