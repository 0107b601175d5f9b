"""State of the device during a measurement: clock, temperature, throttling."""

from __future__ import annotations

import os
import subprocess
from typing import Protocol

import torch

from adaexplore.core.verdict.evaluation import Conditions

_ASKED = ("clocks.sm", "temperature.gpu", "clocks_throttle_reasons.active")
_REASONS = {  # nvml.h: nvmlClocksThrottleReason*, without idling and clocks set by hand
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
_PATIENCE_S = 10.0


class Gauge(Protocol):
    """An instrument that reads the state of a device during a measurement."""

    def start(self) -> None:
        """Begin to read, without delay."""
        ...

    def read(self) -> Conditions:
        """Return the readings since `start`."""
        ...


class CpuGauge:
    """The gauge of a CPU: other load on it affects times."""

    def start(self) -> None:
        """See `Gauge.start`."""

    def read(self) -> Conditions:
        """See `Gauge.read`."""
        return Conditions(load=os.getloadavg()[0])


class CudaGauge:
    """The gauge of a GPU, by `nvidia-smi`; missing readings stay None.

    `nvidia-smi` is a separate process, because the driver's management library cannot be used in a
    fork.
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
    """Read a line of `nvidia-smi`: clock in MHz, temperature in degrees, reasons in hexadecimal."""
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
    """Return the gauge for a device name."""
    return CpuGauge() if device == "cpu" else CudaGauge(device)
