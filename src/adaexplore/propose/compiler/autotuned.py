"""Launches of Triton kernels as Inductor's autotuner chooses them on the device."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.benchmarking import benchmarker
from torch._inductor.runtime.triton_heuristics import GridExpr
from torch._inductor.select_algorithm import TritonTemplateCaller

from adaexplore.propose.compiler.graph import Traced, UnsupportedError
from adaexplore.propose.compiler.inductor import COMPILER_TROUBLE, Lowered, explain
from adaexplore.sandbox.lock import device_lock


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """The launch that Inductor's autotuner chose for a Triton kernel.

    `grid` has three expressions over the kernel's parameters, evaluated after the assignments in
    `prelude`.
    """

    blocks: dict[str, int]
    options: dict[str, int | bool]
    grid: tuple[str, str, str]
    prelude: tuple[str, ...]


def run_and_autotune(lowered: Lowered, traced: Traced) -> dict[str, LaunchConfig]:
    """Run the wrapper once on the device and return the chosen launch of each kernel, by name."""
    module = PyCodeCache.load(lowered.source)
    for name, value in lowered.constants.items():
        setattr(module, name, value)
    try:
        with torch.no_grad():
            module.call([traced.values[index] for index in lowered.arguments])
        torch.cuda.synchronize()
    except COMPILER_TROUBLE as error:
        raise UnsupportedError(explain(error)) from error
    return {
        name: _launch_config(kernel)
        for name, kernel in vars(module).items()
        if hasattr(kernel, "launchers") and hasattr(kernel, "inductor_meta") and kernel.launchers
    }


@functools.cache  # once per process, however many jobs it runs
def skip_grouped_convolution_templates() -> None:
    """Exclude Triton templates for grouped convolutions from autotuning, in this process.

    They multiply whole tiles for each group: on a depthwise convolution one launch takes seconds
    where cuDNN takes a millisecond, and the autotuner launches each choice several times.
    """
    benchmark = TritonTemplateCaller.benchmark

    def unless_grouped(choice: Any, *args: Any, **kwargs: Any) -> Any:
        shapes = [node.get_size() for node in choice.input_nodes[:2]]
        if all(len(shape) >= 4 for shape in shapes) and shapes[0][1] != shapes[1][1]:
            return float("inf")
        return benchmark(choice, *args, **kwargs)

    TritonTemplateCaller.benchmark = unless_grouped


@functools.cache  # once per process: the lock must not be taken twice
def lock_benchmarks(device: str) -> None:
    """Make Inductor's autotuner hold the device exclusively while it times a choice.

    Compiling, which takes most of an autotuner's time, leaves the device to others. Holds for this
    process.
    """
    kind = type(benchmarker)
    benchmark = kind.benchmark_gpu

    def alone(*args: Any, **kwargs: Any) -> Any:
        with device_lock(device, exclusive=True):
            return benchmark(*args, **kwargs)

    kind.benchmark_gpu = alone


def _launch_config(kernel: Any) -> LaunchConfig:
    chosen = kernel.launchers[0].config
    try:  # block sizes by name, so that the grid follows when one is changed
        grid = GridExpr.from_meta(kernel.inductor_meta, {name: name for name in chosen.kwargs})
    except (AssertionError, TypeError):  # the grid's form depends on the values
        grid = GridExpr.from_meta(kernel.inductor_meta, chosen)
    options: dict[str, int | bool] = {
        "num_warps": chosen.num_warps,
        "num_stages": chosen.num_stages,
    }
    if getattr(chosen, "maxnreg", None):
        options["maxnreg"] = chosen.maxnreg
    for flag in ("launch_pdl", "launch_cooperative_grid"):
        if kernel.triton_meta.get(flag):
            options[flag] = True
    if "enable_fp_fusion" in kernel.triton_meta:
        options["enable_fp_fusion"] = kernel.triton_meta["enable_fp_fusion"]
    return LaunchConfig(
        dict(chosen.kwargs),
        options,
        (str(grid.x_grid), str(grid.y_grid), str(grid.z_grid)),
        tuple(grid.prefix),
    )
