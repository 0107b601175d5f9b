"""The resources that a kernel needs on its target, from a real compilation.

Pins Triton's compile stages.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import triton.compiler.compiler as compiler
from triton._C.libtriton import ir
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.errors import OutOfResources, PTXASError

from adaexplore.evaluate.kernels.capture import CapturedKernel
from adaexplore.evaluate.kernels.cubin import read_cubin
from adaexplore.evaluate.kernels.driver import gpu_target
from adaexplore.evaluate.kernels.instructions import code_of, of_kernel
from adaexplore.evaluate.kernels.targets import WARP, Target
from adaexplore.evaluate.wire.offline_messages import KernelResources


class TooLargeError(OutOfResources):  # type: ignore[misc]  # Triton has no types
    """A kernel too large for a block of the target; at a launch, Triton raises the base class."""

    def __init__(self, required: int, limit: int, what: str, message: str) -> None:
        super().__init__(required, limit, what)
        self.args = (message,)

    def __str__(self) -> str:
        return str(self.args[0])


def compile_for(kernel: CapturedKernel, target: Target) -> KernelResources:
    """Compile a kernel for the target, up to machine code.

    Raises Triton's exceptions for a kernel that Triton refuses, and `TooLargeError`. The size is
    known before the last stage, in which `ptxas` can take minutes on a kernel that is too large.
    """
    gpu = gpu_target(target)
    backend = compiler.make_backend(gpu)
    options = backend.parse_options(dict(kernel.options))
    metadata: dict[str, Any] = {"hash": kernel.key, "target": gpu, **options.__dict__}
    stages: dict[str, Any] = {}
    texts: dict[str, str] = {}
    backend.add_stages(stages, options, kernel.source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with _reasons_of_the_compiler():
        module = kernel.source.make_ir(
            gpu,
            options,
            backend.get_codegen_implementation(options),
            backend.get_module_map(),
            context,
        )
        for name, stage in stages.items():
            module = stage(module, metadata)
            if name in ("ttgir", "ptx"):
                texts[name] = str(module)
            if name == "llir":
                check_size(kernel.name, WARP * metadata["num_warps"], metadata["shared"], target)
    needs = read_cubin(module)
    return KernelResources(
        kernel.name,
        metadata["num_warps"],
        metadata["shared"],
        needs.registers,
        needs.frame_bytes,
        metadata["global_scratch_size"] or 0,
        code_of(texts["ptx"], metadata),
        tuple(sorted(of_kernel(texts))),
    )


def compile_any(kernels: Sequence[CapturedKernel], target: Target) -> KernelResources:
    """Compile the first configuration of an autotuned kernel that fits on the target.

    If none fits, raises the failure of the first configuration. Like an autotuner, it passes over
    these failures and no others.
    """
    failure: Exception | None = None
    for kernel in kernels:
        try:
            return compile_for(kernel, target)
        except (OutOfResources, PTXASError, CompileTimeAssertionFailure) as error:
            failure = failure or error
    assert failure is not None
    raise failure


def check_size(kernel: str, threads: int, shared_bytes: int, target: Target) -> None:
    """Raise `TooLargeError` where a block of the target has not as many threads or bytes."""
    if threads > target.threads_a_block:
        raise TooLargeError(
            threads,
            target.threads_a_block,
            "threads",
            f"{kernel} has num_warps={threads // WARP}, which is {threads:,} threads; a "
            f"block of {target.name} has at most {target.threads_a_block:,}",
        )
    if shared_bytes > target.shared_bytes:
        raise TooLargeError(
            shared_bytes,
            target.shared_bytes,
            "shared memory",
            f"{kernel} needs {shared_bytes:,} bytes of shared memory; a block of {target.name} has "
            f"at most {target.shared_bytes:,}: use smaller blocks or fewer stages",
        )


@contextmanager
def _reasons_of_the_compiler() -> Iterator[None]:
    """Add the reason that MLIR and LLVM print to a compiler's exception, which has none.

    The reason is read back from the file that standard error goes to; a terminal is not read.
    """
    is_file = stat.S_ISREG(os.fstat(2).st_mode)
    start = os.fstat(2).st_size
    try:
        yield
    except RuntimeError as error:
        if is_file:
            with open("/proc/self/fd/2", "rb") as printed:  # noqa: PTH123 - it has no path
                printed.seek(start)
                text = printed.read().decode(errors="replace")
            if reasons := re.findall(r"error: .*", text):
                raise RuntimeError(f"{error}: {reasons[0]}") from error
        raise
