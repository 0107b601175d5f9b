"""Messages between the judge without a GPU and a candidate's process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adaexplore.core.problem import Precision, TargetName
from adaexplore.evaluate.wire.messages import Done, Pickled, Request


@dataclass(frozen=True)
class KernelWork:
    """The work of one kernel.

    `memory_bytes` cross the memory bus, `cache_bytes` that of the L2 cache. `flops` are by the
    format that they are computed in, as in `Target.flops`. `programs` run side by side, as far as
    there are multiprocessors; None where there are enough. `partial` marks incomplete work.
    """

    memory_bytes: float
    cache_bytes: float
    flops: Mapping[str, float]
    programs: int | None = None
    partial: bool = False


@dataclass(frozen=True)
class KernelResources:
    """A compiled kernel's needs.

    `shared_bytes` is per block, `registers` and `spill_bytes` per thread, `num_warps` per block.
    `scratch_bytes` is global memory per program, which an allocator has to give. `code` is a hash
    of the machine code, `instructions` names those in it (see `kernels.instructions`).
    """

    kernel: str
    num_warps: int
    shared_bytes: int
    registers: int
    spill_bytes: int
    scratch_bytes: int
    code: str
    instructions: tuple[str, ...]


@dataclass(frozen=True)
class CapturedGrid:
    """A launch of a call: the kernel's name and its grid."""

    kernel: str
    grid: tuple[int, ...]


@dataclass(frozen=True)
class CapturedWork:
    """The work of a call: that of PyTorch's operations, then that of each launch."""

    works: tuple[KernelWork, ...]
    launched: tuple[CapturedGrid, ...]


@dataclass(frozen=True)
class KernelNames:
    """The kernels launched so far."""

    kernels: tuple[str, ...]


@dataclass(frozen=True)
class CompiledKernel:
    """A compiled kernel; `has_allocator` if each of its launches would get its scratch memory."""

    resources: KernelResources
    has_allocator: bool


@dataclass(frozen=True)
class Begin(Request[Done]):
    """Pretend a GPU; launches are interpreted on "cpu" and recorded on "meta".

    One interpreted launch may take `launch_s` seconds.
    """

    target: TargetName
    device: str
    launch_s: float = 0.0


@dataclass(frozen=True)
class ListKernels(Request[KernelNames]):
    """Name the kernels launched so far."""


@dataclass(frozen=True)
class CompileKernel(Request[CompiledKernel]):
    """Compile one of the kernels, by its number, for the target."""

    kernel: int


@dataclass(frozen=True)
class Capture(Request[CapturedWork]):
    """Call on tensors without data, and tell the work of the call."""

    inputs: Pickled
    precision: Precision

    def accepts(self, reply: CapturedWork) -> bool:
        """Return True if amounts are finite and not negative, and each launch has its work."""
        return len(reply.launched) <= len(reply.works) and all(map(_is_possible, reply.works))


def _is_possible(work: KernelWork) -> bool:
    amounts = (work.memory_bytes, work.cache_bytes, *work.flops.values())
    return all(0.0 <= amount < float("inf") for amount in amounts) and work.programs != 0
