"""A trial of a package on this machine, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


class FailedTrialError(Exception):
    """The package gave no result; the text is the last line of its error, or that it took long."""


@dataclass(frozen=True, slots=True)
class WorkloadTrial:
    """The largest relative error of a workload's outputs, and the times of all parties."""

    workload: str
    error: float
    kernel_us: float
    eager_us: float
    compile_us: float

    @property
    def speedup(self) -> float:
        """The speedup over the faster of eager and `torch.compile`."""
        return min(self.eager_us, self.compile_us) / self.kernel_us


@dataclass(frozen=True, slots=True)
class Trial:
    """The versions and the compute capability of a trial, and its workloads."""

    torch: str
    triton: str
    gpu: str
    workloads: tuple[WorkloadTrial, ...]

    @property
    def error(self) -> float:
        """The largest error of a workload."""
        return max(each.error for each in self.workloads)

    @property
    def speedup(self) -> float:
        """The smallest speedup of a workload."""
        return min(each.speedup for each in self.workloads)

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Trial:
        """Inverse of `to_json`, after JSON."""
        workloads = tuple(WorkloadTrial(**each) for each in data["workloads"])
        return Trial(**{**data, "workloads": workloads})


def place_of_trial(device: str) -> str:
    """Return the device, with its index, that a package of a kind of device is tried on."""
    return "cpu" if device == "cpu" else f"{device}:0"


LIMIT_S = 1800.0
"""Time of a trial: compiling the original takes minutes, and a kernel that hangs has no end."""


def run_trial(folder: Path, name: str, limit_s: float = LIMIT_S) -> Trial:
    """Verify and time the package in a folder; raise `FailedTrialError` where that fails.

    The caller holds its device alone. After `limit_s` seconds it and all processes that it started
    are killed.
    """
    paths = [str(folder.resolve() / "src"), os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen(
        [sys.executable, "-m", f"{name}.verify"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise FailedTrialError(f"it gave no result in {limit_s:g} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        raise FailedTrialError((err.strip().splitlines() or ["no message"])[-1])
    return Trial.from_json(json.loads(out.splitlines()[-1]))
