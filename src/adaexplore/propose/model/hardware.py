"""What is known of the hardware that kernels are written for: measured elsewhere, and the sheets.

Figures of a GPU come from its vendor's data sheet, dense, and are told beside what was measured.
A GPU without a sheet here is described by what PyTorch says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaexplore.core.problem import Problem, TargetName


@dataclass(frozen=True, slots=True)
class Sheet:
    """A GPU's data sheet: `bandwidth` in bytes per second, the rest in FLOP/s without sparsity.

    `fp32` is without tensor cores, `tf32` and `half` (fp16, bf16) are with them.
    """

    bandwidth: float
    fp32: float
    tf32: float
    half: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What a compute capability allows: shared memory of a block in bytes, threads of an SM."""

    shared_bytes: int
    threads: int


SHEETS: Mapping[str, Sheet] = {
    "NVIDIA A100-SXM4-40GB": Sheet(1.555e12, 19.5e12, 156e12, 312e12),
    "NVIDIA A100-SXM4-80GB": Sheet(2.039e12, 19.5e12, 156e12, 312e12),
    "NVIDIA A100 80GB PCIe": Sheet(1.935e12, 19.5e12, 156e12, 312e12),
    "NVIDIA RTX A6000": Sheet(0.768e12, 38.7e12, 77.4e12, 154.8e12),
    "NVIDIA L40S": Sheet(0.864e12, 91.6e12, 183e12, 362e12),
    "NVIDIA H100 PCIe": Sheet(2.0e12, 51e12, 378e12, 756e12),
    "NVIDIA H100 80GB HBM3": Sheet(3.35e12, 67e12, 495e12, 989e12),
    "NVIDIA H200": Sheet(4.8e12, 67e12, 495e12, 989e12),
    "NVIDIA B200": Sheet(8.0e12, 75e12, 1125e12, 2250e12),
}
"""By the name PyTorch gives them. Sources: NVIDIA's data sheets of these products."""

LIMITS: Mapping[str, Limits] = {
    "8.0": Limits(163 << 10, 2048),
    "8.6": Limits(99 << 10, 1536),
    "8.9": Limits(99 << 10, 1536),
    "9.0": Limits(227 << 10, 2048),
    "10.0": Limits(227 << 10, 2048),
    "12.0": Limits(99 << 10, 1536),
}
"""By compute capability. Source: the CUDA programming guide's table of them."""

_TARGETS: Mapping[TargetName, tuple[str, str, int, int]] = {
    "sm_80": ("NVIDIA A100-SXM4-80GB", "8.0", 108, 40 << 20),
    "sm_90": ("NVIDIA H200", "9.0", 132, 50 << 20),
    "sm_100": ("NVIDIA B200", "10.0", 148, 126 << 20),
}
"""The GPU of a target, its compute capability, multiprocessors and bytes of L2, by the sheets."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The device that a kernel is to be fast on.

    `capability` is empty on a CPU. What nobody told is 0 or None. `threads` is how many PyTorch
    uses on a CPU.
    """

    name: str
    capability: str = ""
    multiprocessors: int = 0
    memory_gib: float = 0.0
    l2_bytes: int = 0
    threads: int = 0
    sheet: Sheet | None = None
    limits: Limits | None = None

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU, or a kernel is compiled for one."""
        return bool(self.capability)

    @property
    def has_tf32(self) -> bool:
        """Whether its tensor cores take fp32 operands, as they do since compute capability 8.0."""
        return self.generation >= 8

    @property
    def has_tma(self) -> bool:
        """Whether it copies tiles that descriptors describe, as since compute capability 9.0."""
        return self.generation >= 9

    @property
    def generation(self) -> int:
        """The major compute capability, 0 on a CPU."""
        return int(self.capability.partition(".")[0] or 0)


def hardware_of(problem: Problem, environment: Mapping[str, Any]) -> Hardware:
    """What kernels for `problem` run on, or are compiled for where it names a target."""
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
            environment.get("cpu", "a CPU"),
            threads=environment.get("threads", environment.get("cores", 0)),
        )
    name, capability = environment.get("gpu", "a GPU"), environment.get("compute_capability", "")
    return Hardware(
        name,
        capability or "0.0",
        environment.get("multiprocessors", 0),
        environment.get("gpu_memory_gib", 0.0),
        environment.get("l2_bytes", 0),
        sheet=SHEETS.get(name),
        limits=LIMITS.get(capability),
    )
