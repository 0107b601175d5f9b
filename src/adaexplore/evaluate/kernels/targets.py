"""The GPUs that kernels can be compiled for on a machine without one."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core.problem import TargetName

WARP = 32
"""Threads in a warp, on every target."""


class NeedsGpuError(NotImplementedError):
    """A feature that cannot be judged without a GPU; the message is one line."""


@dataclass(frozen=True, slots=True)
class Target:
    """An NVIDIA architecture, with the data sheet of the GPU that represents it.

    `shared_bytes` is the limit on a block's shared memory (with opt-in). `bandwidth` is in bytes
    per second. `flops` is the dense peak in FLOP/s by the kind of product: "fp32" without tensor
    cores, "tf32" and "half" with them.
    """

    name: TargetName
    arch: int
    gpu: str
    multiprocessors: int
    shared_bytes: int
    l2_bytes: int
    memory_bytes: int
    bandwidth: float
    flops: dict[str, float]
    registers: int = 65_536
    threads: int = 2048
    threads_a_block: int = 1024

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability, such as (9, 0)."""
        return divmod(self.arch, 10)


TARGETS: dict[TargetName, Target] = {
    target.name: target
    for target in (
        Target(
            "sm_80",
            80,
            "NVIDIA A100-SXM4-80GB",
            multiprocessors=108,
            shared_bytes=163 << 10,
            l2_bytes=40 << 20,
            memory_bytes=80 << 30,
            bandwidth=2.039e12,
            flops={"fp32": 19.5e12, "tf32": 156e12, "half": 312e12},
        ),
        Target(
            "sm_90",
            90,
            "NVIDIA H200",
            multiprocessors=132,
            shared_bytes=227 << 10,
            l2_bytes=50 << 20,
            memory_bytes=141 << 30,
            bandwidth=4.8e12,
            flops={"fp32": 67e12, "tf32": 495e12, "half": 989e12},
        ),
        Target(
            "sm_100",
            100,
            "NVIDIA B200",
            multiprocessors=148,
            shared_bytes=227 << 10,
            l2_bytes=126 << 20,
            memory_bytes=180 << 30,
            bandwidth=8.0e12,
            flops={"fp32": 75e12, "tf32": 1125e12, "half": 2250e12},
        ),
    )
}
"""Targets by name. Sources: NVIDIA's data sheets and the table in the CUDA programming guide."""
