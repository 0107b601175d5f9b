"""What a measurement was made on."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch


def describe(request: dict[str, Any]) -> dict[str, Any]:
    """A job: the hardware and software behind `request["device"]`, as plain data.

    Holds the key "unusable", one line for the user, where this torch cannot use the device.
    """
    device: str = request["device"]
    facts: dict[str, Any] = {
        "device": device,
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": _triton_version(),
        "system": platform.platform(),
        "commit": _commit(),
    }
    if device == "cpu":
        facts["threads"] = torch.get_num_threads()
        return facts
    if not torch.cuda.is_available():
        why = "is a CPU build" if torch.version.cuda is None else "finds no usable GPU"
        facts["unusable"] = (
            f"--device {device}: torch {torch.__version__} {why}; "
            "install a CUDA build of torch, or use --device cpu"
        )
        return facts
    properties = torch.cuda.get_device_properties(device)
    return facts | {
        "gpu": properties.name,
        "gpu_memory_gib": round(properties.total_memory / 2**30, 1),
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "cuda": torch.version.cuda,
        "driver": _driver_version(),
    }


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _triton_version() -> str | None:
    if importlib.util.find_spec("triton") is None:
        return None
    import triton

    version: str = triton.__version__
    return version


def _driver_version() -> str | None:
    return _output(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])


def _commit() -> str | None:
    """The commit of this package's checkout, None for an installed package."""
    folder = str(Path(__file__).parent)
    inside = _output(["git", "-C", folder, "ls-files", "--error-unmatch", __file__])
    return _output(["git", "-C", folder, "rev-parse", "HEAD"]) if inside else None


def _output(command: list[str]) -> str | None:
    """The first line a command prints, None if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0] if lines else None
