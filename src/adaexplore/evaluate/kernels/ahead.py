"""Compilation of a candidate's Triton kernels before the candidate gets the GPU.

A call on tensors without data shows which kernels a real call starts, with which arguments;
compiling them takes processors and no GPU. The results lie in Triton's cache in the candidate's own
folder, where its first real call finds them. All of this runs in children of the candidate's
process, which are confined like that process. The real call reports any failure again.
"""

from __future__ import annotations

import base64
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from adaexplore.sandbox.gpus import VISIBLE

if TYPE_CHECKING:
    from adaexplore.evaluate.kernels.targets import Target
    from adaexplore.evaluate.wire.messages import Build

_CAPTURE_LIMIT_S = 10.0  # without data, a longer call is taken to be endless
_MAX_KERNELS = 64  # including the configurations of autotuners
_MAX_CHILDREN = 8
_NICENESS = 10


def compile_ahead(request: Build) -> None:
    """Fill the cache for a candidate; return when the cache is filled.

    Compilation during the real call would hold the GPU for at least as long. The judge's time limit
    ends this call. The process must not have used CUDA yet.
    """
    in_children([lambda: _capture_and_compile(request)])


def stand_back() -> None:
    """Hide the GPU from this child; lower its priority, so that it does not disturb timing."""
    os.environ[VISIBLE] = ""
    os.nice(_NICENESS)


def target_for(capability: Sequence[int]) -> Target:
    """Return a target with the compute capability of the GPU at hand."""
    from adaexplore.evaluate.kernels.targets import TARGETS

    major, minor = capability
    return replace(TARGETS["sm_90"], arch=10 * major + minor)


def call_without_data(request: Build, target: Target) -> None:
    """Import, construct and call a candidate on meta tensors that claim to lie on `target`.

    The patches of this process stay. Raises any exception of the candidate.
    """
    from adaexplore.evaluate.kernels.count import without_values
    from adaexplore.evaluate.kernels.torch_shim import Shim
    from adaexplore.sandbox.user.user_code import Instance

    shim = Shim(target, Path.cwd(), "meta")
    shim.install()
    with shim.mode(), without_values():
        instance = Instance.load(
            request.source,
            "ModelNew",
            device="meta",
            seed=request.seed,
            mode=request.mode,
            folder=Path.cwd(),
            init=pickle.loads(base64.b64decode(request.init)),
            name="candidate",
            access=request.access,
            gradients=request.gradients,
        )
        for inputs in request.inputs:
            instance(pickle.loads(base64.b64decode(inputs)))


def _capture_and_compile(request: Build) -> None:
    import triton.compiler

    from adaexplore.evaluate.kernels import driver
    from adaexplore.evaluate.kernels.build.triton_host import build_launcher
    from adaexplore.evaluate.kernels.capture import Recorder

    stand_back()
    target = target_for(request.capability)
    compile_kernel = triton.compiler.compile
    driver.install(target)
    recorder = Recorder(lambda _: None, all_configurations=True)
    recorder.install()
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _CAPTURE_LIMIT_S)
    try:
        call_without_data(request, target)
    finally:  # launches before an exception happen again in the real call
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        kernels = {launch.kernel.key: launch.kernel for launch in recorder.launches}
        selected = list(kernels.values())[:_MAX_KERNELS]
        children = min(_MAX_CHILDREN, len(os.sched_getaffinity(0)))

        def compile_share(first: int) -> None:
            for kernel in selected[first::children]:
                try:
                    compiled = compile_kernel(
                        kernel.source, target=driver.gpu_target(target), options=kernel.options
                    )
                    build_launcher(compiled.src, compiled.metadata)
                except Exception:  # noqa: BLE001 - the real call reports it
                    continue

        count = min(children, len(selected))
        in_children([partial(compile_share, first) for first in range(count)])


def _give_up(*_: object) -> None:
    raise TimeoutError


def in_children(tasks: Sequence[Callable[[], object]]) -> None:
    """Run each task in a forked child; return when all have ended."""
    children = []
    for task in tasks:
        pid = os.fork()
        if pid == 0:
            try:
                task()
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
