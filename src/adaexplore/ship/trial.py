"""A trial of a package on this machine, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


class FailedTrialError(Exception):
    """The package ended without a result; the text is the last line of its error."""


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


def run_trial(folder: Path, name: str) -> Trial:
    """Verify and time the package in a folder; raise `FailedTrialError` where that fails."""
    paths = [str(folder.resolve() / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", f"{name}.verify"],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=folder,
    )
    if done.returncode != 0:
        raise FailedTrialError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return Trial.from_json(json.loads(done.stdout.splitlines()[-1]))
