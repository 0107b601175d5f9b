"""What Triton launches in this process, and what happens if it does not.

Pins `JITFunction.run`, through which every launch of a `@triton.jit` function goes (autotuned ones
too; not those of a captured CUDA graph, nor TorchInductor's own). Called with `warmup=True` it
compiles and returns the kernel and launches nothing. Same on Triton 3.6 and 3.9.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_REGISTER_BYTES = 4


@dataclass
class Launches:
    """The launches that were seen: how many, and of which kernels by name.

    `kernels` maps a kernel's name to whether it is defined under the candidate's folder and how
    many bytes a thread of it spills (None where it was not loaded).
    """

    count: int = 0
    kernels: dict[str, tuple[bool, int | None]] = field(default_factory=dict)


@contextmanager
def watched_launches(folder: Path, *, suppress: bool = False) -> Iterator[Launches]:
    """Notes every launch in the body; with `suppress`, none of them reaches the device."""
    seen = Launches()
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None:  # the candidate has no use for Triton
        yield seen
        return
    original = jit.JITFunction.run

    def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = original(function, *args, grid=grid, warmup=warmup or suppress, **kwargs)
        if not warmup and kernel is not None:
            seen.count += 1
            file = Path(function.fn.__code__.co_filename)
            spills = getattr(kernel, "n_spills", None)  # set when the kernel is loaded
            spilled = None if spills is None else _REGISTER_BYTES * int(spills)
            seen.kernels[kernel.metadata.name] = (folder in file.parents, spilled)
        return kernel

    jit.JITFunction.run = run
    try:
        yield seen
    finally:
        jit.JITFunction.run = original
