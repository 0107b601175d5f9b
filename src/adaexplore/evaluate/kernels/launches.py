"""Recording and suppression of Triton's launches in this process.

Pins `JITFunction.run`, through which every launch of a `@triton.jit` function goes (also autotuned
launches; not the launches of a captured CUDA graph or of TorchInductor). With `warmup=True` it
compiles and returns the kernel and launches nothing. Pins `Autotuner.run`, which sets
`configs_timings` anew after each search. Triton 3.6 and 3.9 agree in this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from adaexplore.evaluate.kernels.autotuned import latest_search
from adaexplore.evaluate.kernels.instructions import code_of, of_kernel
from adaexplore.evaluate.wire.kernel_messages import LaunchedKernel, TunedKernel

_REGISTER_BYTES = 4


def _bytes(argument: Any) -> int:
    """Return the bytes of a tensor's elements, or of a descriptor's tensor; 0 of anything else."""
    tensor = getattr(argument, "base", argument)
    return tensor.nbytes if isinstance(tensor, torch.Tensor) else 0


@dataclass
class Launches:
    """The launches so far: their number, and their kernels by name.

    `kernels` maps a kernel's name to a pair: True if the kernel is defined under the candidate's
    folder, and the bytes that one of its threads spills (None if the kernel was not loaded).
    `given` maps it to its launches and to the bytes of the tensors that these were given.
    `compiled` holds Triton's objects of these kernels, with their code.
    `tuned` lists the searches of autotuners, in order.
    """

    count: int = 0
    kernels: dict[str, tuple[bool, int | None]] = field(default_factory=dict)
    given: dict[str, tuple[int, int]] = field(default_factory=dict)
    compiled: dict[int, Any] = field(default_factory=dict)
    tuned: list[TunedKernel] = field(default_factory=list)

    def add(self, function: Any, kernel: Any, folder: Path, arguments: Iterable[Any]) -> None:
        """Record a launch; cheap after the kernel's first one, because autotuners time launches."""
        self.count += 1
        launches, size = self.given.get(kernel.metadata.name, (0, 0))
        self.given[kernel.metadata.name] = launches + 1, size + sum(map(_bytes, arguments))
        if id(kernel) in self.compiled:
            return
        self.compiled[id(kernel)] = kernel
        file = Path(function.fn.__code__.co_filename)
        spills = getattr(kernel, "n_spills", None)  # set when the kernel is loaded
        spilled = None if spills is None else _REGISTER_BYTES * int(spills)
        self.kernels[kernel.metadata.name] = (folder in file.parents, spilled)

    def own_kernels(self) -> tuple[LaunchedKernel, ...]:
        """Return the candidate's own kernels, each with its code's hash and its instructions."""
        return tuple(
            LaunchedKernel(
                name=kernel.metadata.name,
                code=code_of(kernel.asm["ptx"], kernel.metadata._asdict()),
                instructions=tuple(sorted(of_kernel(kernel.asm))),
            )
            for kernel in self.compiled.values()
            if self.kernels[kernel.metadata.name][0]
        )


@contextmanager
def watched_launches(
    folder: Path, *, suppress: bool = False, into: Launches | None = None
) -> Iterator[Launches]:
    """Record every launch in the body, in `into` if it is given.

    With `suppress`, no launch reaches the device.
    """
    seen = Launches() if into is None else into
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None:  # the candidate uses no Triton
        yield seen
        return
    original = jit.JITFunction.run
    autotuner = sys.modules["triton.runtime.autotuner"].Autotuner
    original_search = autotuner.run

    def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = original(function, *args, grid=grid, warmup=warmup or suppress, **kwargs)
        if not warmup and hasattr(kernel, "metadata"):  # else a stand-in for interpretation
            seen.add(function, kernel, folder, (*args, *kwargs.values()))
        return kernel

    def run_autotuned(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        before = getattr(tuner, "configs_timings", None)
        result = original_search(tuner, *args, **kwargs)
        if getattr(tuner, "configs_timings", None) is not before:
            seen.tuned += latest_search(tuner)
        return result

    jit.JITFunction.run, autotuner.run = run, run_autotuned
    try:
        yield seen
    finally:
        jit.JITFunction.run, autotuner.run = original, original_search
