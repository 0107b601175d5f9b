"""The job that describes the machine of a run."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.environment import Environment


def describe(request: dict[str, Any]) -> dict[str, Any]:
    """Describe the hardware and software behind `request["device"]`; a job.

    Returns "environment" (see `core.environment.Environment`) and "unusable": one line for the user
    where this torch cannot use the device, else "".
    """
    device: str = request["device"]
    environment, unusable = _host(device), ""
    if device == "cpu":
        environment = replace(environment, threads=torch.get_num_threads())
    elif torch.cuda.is_available():
        environment = _with_gpu(environment)
    else:
        why = "is a CPU build" if torch.version.cuda is None else "finds no usable GPU"
        unusable = (
            f"--device {device}: torch {torch.__version__} {why}; "
            "install a CUDA build of torch, or use --device cpu"
        )
    return {"environment": environment.to_json(), "unusable": unusable}


def _host(device: str) -> Environment:
    return Environment(
        device=device,
        cpu=_cpu_name(),
        cores=len(os.sched_getaffinity(0)),
        python=platform.python_version(),
        torch=torch.__version__,
        triton=triton_version(),
        system=platform.platform(),
        commit=_commit(),
        cxx=_first_line([*shlex.split(os.environ.get("CXX", "g++")), "--version"]),
    )


def _with_gpu(environment: Environment) -> Environment:
    properties = torch.cuda.get_device_properties(environment.device)
    return replace(
        environment,
        gpu=properties.name,
        gpu_memory_gib=round(properties.total_memory / 2**30, 1),
        compute_capability=f"{properties.major}.{properties.minor}",
        multiprocessors=properties.multi_processor_count,
        l2_bytes=properties.L2_cache_size,
        cuda=torch.version.cuda or "",
        driver=_first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]),
    )


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def triton_version() -> str:
    """Return the version of Triton, empty where it is not installed."""
    if importlib.util.find_spec("triton") is None:
        return ""
    import triton

    version: str = triton.__version__
    return version


def _commit() -> str:
    """Return the commit of this package's checkout; empty for an installed package."""
    folder = str(Path(__file__).parent)
    inside = _first_line(["git", "-C", folder, "ls-files", "--error-unmatch", __file__])
    return _first_line(["git", "-C", folder, "rev-parse", "HEAD"]) if inside else ""


def _first_line(command: list[str]) -> str:
    """Return the first line that a command prints; empty if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[0] if lines else ""
