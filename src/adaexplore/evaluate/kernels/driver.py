"""A Triton driver for an absent GPU. Pins `triton.runtime.driver`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime.driver import driver as active_driver

from adaexplore.evaluate.kernels.targets import WARP, Target


def install(target: Target) -> None:
    """Make Triton take `target` for the active GPU of this process."""
    active_driver.set_active(_Driver(target))


def gpu_target(target: Target) -> GPUTarget:
    """Return the target as Triton's type."""
    return GPUTarget("cuda", target.arch, WARP)


class _Utils:
    def __init__(self, target: Target) -> None:
        self._target = target

    def get_device_properties(self, device: int) -> dict[str, int]:  # noqa: ARG002
        return {
            "max_shared_mem": self._target.shared_bytes,
            "max_num_regs": self._target.registers,
            "multiprocessor_count": self._target.multiprocessors,
            "warpSize": WARP,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 2_619_000,
            "mem_bus_width": 5120,
        }


class _Driver(DriverBase):  # type: ignore[misc]  # Triton has no types
    """A driver that answers queries of host code; it loads and launches nothing (see `capture`)."""

    launcher_cls = None

    def __init__(self, target: Target) -> None:
        self._target = target
        self.utils = _Utils(target)

    def get_current_target(self) -> GPUTarget:
        return gpu_target(self._target)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:  # noqa: ARG002
        return self._target.capability

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int = 0) -> int:  # noqa: ARG002
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1)

    def clear_cache(self, cache: torch.Tensor) -> None:
        pass

    def get_benchmarker(self) -> Callable[..., list[float]]:
        def run_once(call: Callable[[], object], *, quantiles: Any = None, **_: Any) -> list[float]:
            call()
            return [1.0] * len(quantiles or [0.5])

        return run_once

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    @classmethod
    def is_active(cls) -> bool:
        return True
