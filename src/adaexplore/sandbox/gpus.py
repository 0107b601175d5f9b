"""One GPU per process: the identity of `cuda:1`, and the variables that hide all other GPUs.

Events, streams and kernels belong to a process's current GPU, the first visible one, whatever
device its tensors are on. All processes of a problem therefore see only its GPU, as `cuda:0`.
Generated code then names no other GPU, and a candidate has no second GPU for hidden work.
"""

from __future__ import annotations

import os

from adaexplore.sandbox.cores import CORES, shares_here

VISIBLE = "CUDA_VISIBLE_DEVICES"


def alone(device: str) -> tuple[str, dict[str, str]]:
    """Return the name of `device` in a process that sees no other GPU, and the environment
    variables for it; the device itself and no variables on the CPU."""
    if device == "cpu":
        return device, {}
    name = physical(device)
    cores = os.environ.get(CORES)
    if cores is None:
        cores = str(shares_here(int(name) if name.isdigit() else _index(device)) or "")
    return "cuda:0", {VISIBLE: name, CORES: cores}


def physical(device: str) -> str:
    """Return CUDA's physical name of this process's `device` ("cuda:1"): a number, or a UUID if
    CUDA_VISIBLE_DEVICES has UUIDs."""
    index = _index(device)
    visible = os.environ.get(VISIBLE)
    names = [name.strip() for name in visible.split(",")] if visible else []
    return names[index] if index < len(names) else str(index)


def seen() -> dict[str, str]:
    """Return the variables of this process that select its visible GPUs, and their cores."""
    return {name: os.environ[name] for name in (VISIBLE, CORES) if name in os.environ}


def _index(device: str) -> int:
    return int(device.partition(":")[2] or 0)
