"""What the device was like while it was measured: clock, temperature, throttling."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Protocol

import torch

from adaexplore.evaluation import Conditions

_SM_CLOCK = 1  # nvml.h: NVML_CLOCK_SM
_DIE = 0  # NVML_TEMPERATURE_GPU
_REASONS = {  # nvml.h: nvmlClocksThrottleReason*; idling and clocks set by hand are none
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}


class Gauge(Protocol):
    """Reads a device's instruments."""

    def read(self) -> Conditions:
        """As they are now."""
        ...


class CpuGauge:
    """The processor's: what else runs on it is what matters there."""

    def read(self) -> Conditions:
        """See `Gauge.read`."""
        return Conditions(load=os.getloadavg()[0])


class CudaGauge:
    """A GPU's, through the driver's management library; what it does not tell stays None."""

    def __init__(self, device: str) -> None:
        self._nvml: Any = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        handle = ctypes.c_void_p()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}".encode()
        if library.nvmlInit_v2() == 0 and (
            library.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(handle)) == 0
        ):
            self._nvml, self._handle = library, handle

    def read(self) -> Conditions:
        """See `Gauge.read`."""
        load = os.getloadavg()[0]
        if self._nvml is None:
            return Conditions(load=load)
        reasons = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong())
        return Conditions(
            load=load,
            clock_mhz=self._number("nvmlDeviceGetClockInfo", ctypes.c_uint(), _SM_CLOCK),
            temperature_c=self._number("nvmlDeviceGetTemperature", ctypes.c_uint(), _DIE),
            throttled=tuple(name for bit, name in _REASONS.items() if (reasons or 0) & bit),
        )

    def _number(self, function: str, into: Any, *arguments: int) -> int | None:
        status = getattr(self._nvml, function)(self._handle, *arguments, ctypes.byref(into))
        return int(into.value) if status == 0 else None


def gauge_for(device: str) -> Gauge:
    """The gauge of a device name."""
    return CpuGauge() if device == "cpu" else CudaGauge(device)


def worst(readings: list[Conditions]) -> Conditions:
    """The least clock, the highest temperature and load, and every throttling that was seen.

    Raises `ValueError` for no readings.
    """
    clocks = [r.clock_mhz for r in readings if r.clock_mhz is not None]
    temperatures = [r.temperature_c for r in readings if r.temperature_c is not None]
    return Conditions(
        load=max(r.load for r in readings),
        clock_mhz=min(clocks, default=None),
        temperature_c=max(temperatures, default=None),
        throttled=tuple(dict.fromkeys(name for r in readings for name in r.throttled)),
    )
