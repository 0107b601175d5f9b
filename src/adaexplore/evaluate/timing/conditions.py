"""State of the device during a measurement: clock, temperature, throttling."""

from __future__ import annotations

import os
import subprocess
from typing import Protocol

import torch

from adaexplore.core.evaluation import Conditions

_ASKED = ("clocks.sm", "temperature.gpu", "clocks_throttle_reasons.active")
_REASONS = {  # nvml.h: nvmlClocksThrottleReason*; idling and clocks set by hand are none
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
_PATIENCE_S = 10.0


class Gauge(Protocol):
    """Reads a device's instruments while it is measured."""

    def start(self) -> None:
        """Begins to read; takes no time."""
        ...

    def read(self) -> Conditions:
        """Return the readings since `start`."""
        ...


class CpuGauge:
    """The processor's: what else runs on it is what matters there."""

    def start(self) -> None:
        """See `Gauge.start`."""

    def read(self) -> Conditions:
        """See `Gauge.read`."""
        return Conditions(load=os.getloadavg()[0])


class CudaGauge:
    """A GPU's, by `nvidia-smi`; what it does not tell stays None.

    A process of its own: the driver's management library cannot be used in a fork.
    """

    def __init__(self, device: str) -> None:
        self._uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """See `Gauge.start`."""
        command = ["nvidia-smi", f"--id={self._uuid}", f"--query-gpu={','.join(_ASKED)}"]
        try:
            self._process = subprocess.Popen(
                [*command, "--format=csv,noheader,nounits"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError:
            self._process = None

    def read(self) -> Conditions:
        """See `Gauge.read`."""
        text = ""
        if self._process is not None:
            try:
                text, _ = self._process.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.communicate()
        return from_line(text.strip(), load=os.getloadavg()[0])


def from_line(line: str, *, load: float) -> Conditions:
    """A line of `nvidia-smi`: clock in MHz, temperature in degrees, reasons as a hexadecimal."""
    try:
        clock, temperature, reasons = (field.strip() for field in line.split(","))
        bits = int(reasons, 16)
        return Conditions(
            load=load,
            clock_mhz=int(clock),
            temperature_c=int(temperature),
            throttled=tuple(name for bit, name in _REASONS.items() if bits & bit),
        )
    except ValueError:  # "[N/A]", or an error in words
        return Conditions(load=load)


def gauge_for(device: str) -> Gauge:
    """The gauge of a device name."""
    return CpuGauge() if device == "cpu" else CudaGauge(device)
