"""Compilation of the turnstile's kernels, which the fork server does once for all workers."""

from __future__ import annotations

from pathlib import Path

import torch
import triton.compiler

from adaexplore.evaluate.kernels import driver
from adaexplore.evaluate.kernels.ahead import in_children
from adaexplore.evaluate.kernels.build.triton_host import build_launcher
from adaexplore.evaluate.kernels.capture import Recorder
from adaexplore.evaluate.kernels.targets import TARGETS, Target
from adaexplore.evaluate.timing.turnstile.seals import CacheKey, Seals
from adaexplore.evaluate.timing.turnstile.sums import Sums


def warm_for_gpu() -> None:
    """Compile the kernels into the cache that workers start with a copy of; only beside a GPU."""
    if Path("/dev/nvidiactl").exists():
        in_children([lambda: compile_for(TARGETS["sm_90"])])


def compile_for(target: Target) -> list[str]:
    """Compile the kernels into the cache; return their names.

    This process can launch no kernel afterwards.
    """
    compile_kernel = triton.compiler.compile
    driver.install(target)
    recorder = Recorder(lambda _: None)
    recorder.install()
    meta = torch.device("meta")
    cache_key, words = CacheKey(meta), torch.empty(1, dtype=torch.int64, device=meta)
    cache_key.await_key(0, 0, 0, 1)
    Seals([[words]], cache_key).turn(0)
    Sums([[words]], meta).tell(0, cache_key.key, 0, 0, 1)
    for launch in recorder.launches:
        kernel = launch.kernel
        target_gpu = driver.gpu_target(target)
        compiled = compile_kernel(kernel.source, target=target_gpu, options=kernel.options)
        build_launcher(compiled.src, compiled.metadata)
    return [launch.kernel.name for launch in recorder.launches]
