"""Languages whose own compilers work without a GPU: their kernels, and what these need."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from adaexplore.evaluate.kernels.cubin import read_cubin
from adaexplore.evaluate.kernels.instructions import code_of, of_ptx
from adaexplore.evaluate.kernels.resources import check_size
from adaexplore.evaluate.kernels.targets import WARP, Target
from adaexplore.evaluate.wire.offline_messages import KernelResources
from adaexplore.languages import DIALECTS
from adaexplore.languages.base import CompiledLaunch


def capture_launches(target: Target, receive: Callable[[CompiledLaunch], None]) -> None:
    """Make the loaded languages compile for a target, and give their launches to `receive`.

    The patches of this process stay.
    """
    for dialect in DIALECTS.values():
        if dialect.capture and sys.modules.get(dialect.generator or ""):
            module, _, name = dialect.capture.partition(":")
            getattr(import_module(module), name)(target.name, target.multiprocessors, receive)


def resources_of(launch: CompiledLaunch, target: Target) -> KernelResources:
    """Return the resources of a kernel; where code holds several, the largest of each.

    Raises `TooLargeError` for a kernel that does not fit on the target.
    """
    needs = read_cubin(launch.cubin)
    shared_bytes = needs.shared_bytes + launch.shared_bytes
    check_size(launch.kernel, needs.threads, shared_bytes, target)
    return KernelResources(
        kernel=launch.kernel,
        num_warps=-(-needs.threads // WARP),
        shared_bytes=shared_bytes,
        registers=needs.registers,
        spill_bytes=needs.frame_bytes,
        scratch_bytes=0,
        code=code_of(launch.ptx, {"name": launch.kernel, "shared": shared_bytes}),
        instructions=tuple(sorted(of_ptx(launch.ptx))),
    )
