"""Benchmarks: their tasks, and released answers to them, in the forms in which they lie about."""

from __future__ import annotations

import difflib

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Benchmark
from adaexplore.problems.benchmarks.flashinfer import FLASHINFER, SOL_EXECBENCH
from adaexplore.problems.benchmarks.kernelbench import KernelBenchTasks
from adaexplore.problems.benchmarks.kernelbenchx import KernelBenchXTasks
from adaexplore.problems.benchmarks.multikernelbench import MultiKernelBenchTasks
from adaexplore.problems.benchmarks.robustkbench import RobustKBenchTasks
from adaexplore.problems.benchmarks.tritonbench.benchmark import TRITONBENCH_G, TRITONBENCH_T

BENCHMARKS: list[Benchmark] = [
    KernelBenchTasks(),
    MultiKernelBenchTasks(),
    RobustKBenchTasks(),
    KernelBenchXTasks(),
    TRITONBENCH_T,
    TRITONBENCH_G,
    FLASHINFER,
    SOL_EXECBENCH,
]
"""The benchmarks that `adaexplore bench` knows, in the order in which it lists them."""


def benchmark_named(name: str) -> Benchmark:
    """Return the benchmark of this name; raise `BadInputError`, with the near names, for none."""
    known = {each.name: each for each in BENCHMARKS}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or list(known)
    raise BadInputError(f"{name}: no such benchmark; known: {', '.join(near)}")
