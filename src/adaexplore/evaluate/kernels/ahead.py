"""Compiling a candidate's Triton kernels before it is given the GPU.

A call on tensors without data shows which kernels a real call will start, with which arguments;
compiling them takes processors and no GPU. The results lie in the cache of Triton's in the
candidate's own folder, where its first real call finds them. All of it is done in children of the
candidate's process, confined as it is; what goes wrong there is left for the real call to say.
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
from typing import TYPE_CHECKING, Any

from adaexplore.sandbox.gpus import VISIBLE

if TYPE_CHECKING:
    from adaexplore.evaluate.kernels.targets import Target

_CAPTURE_LIMIT_S = 10.0  # on no data: what takes longer does not end
_MOST_KERNELS = 64  # an autotuner's configurations among them
_MOST_CHILDREN = 8
_NICENESS = 10


def compile_ahead(request: dict[str, Any]) -> None:
    """Fills the cache for the candidate of a request; returns when that is done.

    However long that takes, a GPU would be held for as long, or longer, if it were done there: the
    judge's limit ends it.

    The request holds "source", pickled "init" and "inputs" (meta tensors), "capability" of the GPU
    (such as [9, 0]), "seed", "mode" and "access" as JSON. The process must not have used CUDA yet.
    """
    _in_children([lambda: _capture_and_compile(request)])


def stand_back() -> None:
    """For a child that compiles: it sees no GPU, and yields its core to whoever is timed."""
    os.environ[VISIBLE] = ""
    os.nice(_NICENESS)


def target_for(capability: Sequence[int]) -> Target:
    """A GPU of a compute capability, for those who ask about the one that is there."""
    from adaexplore.evaluate.kernels.targets import TARGETS

    major, minor = capability
    return replace(TARGETS["sm_90"], arch=10 * major + minor)


def call_without_data(request: dict[str, Any], target: Target) -> None:
    """Imports, constructs and calls the candidate of a request on meta tensors.

    It is told that they lie on `target`. Patches this process for good, and raises what the
    candidate raises.
    """
    from adaexplore.core.problem import Access
    from adaexplore.evaluate.kernels.count import without_values
    from adaexplore.evaluate.kernels.torch_shim import Shim
    from adaexplore.sandbox.user_code import Instance

    shim = Shim(target, Path.cwd(), "meta")
    shim.install()
    with shim.mode(), without_values():
        instance = Instance.load(
            request["source"],
            "ModelNew",
            device="meta",
            seed=request["seed"],
            mode=request["mode"],
            folder=Path.cwd(),
            init=pickle.loads(base64.b64decode(request["init"])),
            name="candidate",
            access=Access.from_json(request["access"]),
        )
        instance(pickle.loads(base64.b64decode(request["inputs"])))


def _capture_and_compile(request: dict[str, Any]) -> None:
    import triton.compiler

    from adaexplore.evaluate.kernels import driver
    from adaexplore.evaluate.kernels.capture import Recorder
    from adaexplore.evaluate.kernels.triton_host import build_launcher

    stand_back()
    target = target_for(request["capability"])
    really_compile = triton.compiler.compile
    driver.install(target)
    recorder = Recorder(lambda _: None, all_configurations=True)
    recorder.install()
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _CAPTURE_LIMIT_S)
    try:
        call_without_data(request, target)
    finally:  # what was started before something went wrong will be started again
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        kernels = {launch.kernel.key: launch.kernel for launch in recorder.launches}
        some = list(kernels.values())[:_MOST_KERNELS]
        children = min(_MOST_CHILDREN, len(os.sched_getaffinity(0)))

        def compile_share(first: int) -> None:
            for kernel in some[first::children]:
                try:
                    compiled = really_compile(
                        kernel.source, target=driver.gpu_target(target), options=kernel.options
                    )
                    build_launcher(compiled.src, compiled.metadata)
                except Exception:  # noqa: BLE001 - the real call will say it
                    continue

        _in_children([partial(compile_share, first) for first in range(min(children, len(some)))])


def _give_up(*_: object) -> None:
    raise TimeoutError


def _in_children(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs each task in a forked child."""
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
