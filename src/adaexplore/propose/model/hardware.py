"""The hardware that kernels are written for: data sheets and limits of GPUs.

Figures of a GPU come from its vendor's data sheet, without sparsity. Prompts show them beside the
measured rates. A GPU without a sheet here is described by PyTorch's device properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem, TargetName


@dataclass(frozen=True, slots=True)
class DataSheet:
    """A GPU's data sheet: `bandwidth` in bytes per second, the rest in FLOP/s without sparsity.

    `fp32` is without tensor cores, `tf32` and `half` (fp16, bf16) are with them.
    """

    bandwidth: float
    fp32: float
    tf32: float
    half: float


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Limits of a compute capability: shared memory per block in bytes; threads per SM; fp32.

    `fp32` is the number of multiply-adds per SM and cycle, `blocks` the number of blocks per SM.
    """

    shared_bytes: int
    threads: int
    fp32: int = 128
    blocks: int = 32


SHEETS: Mapping[str, DataSheet] = {
    "NVIDIA A100-SXM4-40GB": DataSheet(1.555e12, 19.5e12, 156e12, 312e12),
    "NVIDIA A100-SXM4-80GB": DataSheet(2.039e12, 19.5e12, 156e12, 312e12),
    "NVIDIA A100 80GB PCIe": DataSheet(1.935e12, 19.5e12, 156e12, 312e12),
    "NVIDIA RTX A6000": DataSheet(0.768e12, 38.7e12, 77.4e12, 154.8e12),
    "NVIDIA L40S": DataSheet(0.864e12, 91.6e12, 183e12, 362e12),
    "NVIDIA H100 PCIe": DataSheet(2.0e12, 51e12, 378e12, 756e12),
    "NVIDIA H100 80GB HBM3": DataSheet(3.35e12, 67e12, 495e12, 989e12),
    "NVIDIA H200": DataSheet(4.8e12, 67e12, 495e12, 989e12),
    "NVIDIA B200": DataSheet(8.0e12, 75e12, 1125e12, 2250e12),
}
"""Data sheets by PyTorch's name of the GPU. Source: NVIDIA's data sheets of these products."""

LIMITS: Mapping[str, KernelLimits] = {
    "8.0": KernelLimits(163 << 10, 2048, 64),
    "8.6": KernelLimits(99 << 10, 1536, blocks=16),
    "8.9": KernelLimits(99 << 10, 1536, blocks=24),
    "9.0": KernelLimits(227 << 10, 2048),
    "10.0": KernelLimits(227 << 10, 2048),
    "12.0": KernelLimits(99 << 10, 1536, blocks=24),
}
"""Limits by compute capability. Source: the tables in the CUDA programming guide."""

_TARGETS: Mapping[TargetName, tuple[str, str, int, int]] = {
    "sm_80": ("NVIDIA A100-SXM4-80GB", "8.0", 108, 40 << 20),
    "sm_90": ("NVIDIA H200", "9.0", 132, 50 << 20),
    "sm_100": ("NVIDIA B200", "10.0", 148, 126 << 20),
}
"""GPU of a target, its compute capability, multiprocessors and bytes of L2, by the data sheets."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The device that kernels are optimized for.

    `capability` is empty on a CPU. Unknown values are 0 or None. `threads` is the number of threads
    that PyTorch uses on a CPU.
    """

    name: str
    capability: str = ""
    multiprocessors: int = 0
    memory_gib: float = 0.0
    l2_bytes: int = 0
    threads: int = 0
    sheet: DataSheet | None = None
    limits: KernelLimits | None = None

    @property
    def is_gpu(self) -> bool:
        """True for a GPU, present or a compilation target."""
        return bool(self.capability)

    @property
    def has_tf32(self) -> bool:
        """True if the tensor cores take fp32 operands: since compute capability 8.0."""
        return self.generation >= 8

    @property
    def has_tma(self) -> bool:
        """True if it has the tensor memory accelerator (TMA): since compute capability 9.0."""
        return self.generation >= 9

    @property
    def generation(self) -> int:
        """Major compute capability, 0 on a CPU."""
        return int(self.capability.partition(".")[0] or 0)


def hardware_of(problem: Problem, environment: Environment) -> Hardware:
    """Return the device that `problem` runs on, or its target if it names one."""
    if problem.target:
        name, capability, multiprocessors, l2_bytes = _TARGETS[problem.target]
        return Hardware(
            name,
            capability,
            multiprocessors,
            l2_bytes=l2_bytes,
            sheet=SHEETS[name],
            limits=LIMITS[capability],
        )
    if problem.device == "cpu":
        return Hardware(
            environment.cpu or "a CPU",
            threads=environment.threads or environment.cores,
        )
    name, capability = environment.gpu or "a GPU", environment.compute_capability
    return Hardware(
        name,
        capability or "0.0",
        environment.multiprocessors,
        environment.gpu_memory_gib,
        environment.l2_bytes,
        sheet=SHEETS.get(name),
        limits=LIMITS.get(capability),
    )
