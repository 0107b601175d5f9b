"""One GPU per process: the identity of `cuda:1`, and the variables that hide all other GPUs.

Events, streams and kernels belong to a process's current GPU, the first visible one, whatever
device its tensors are on. All processes of a problem therefore see only its GPU, as `cuda:0`.
Generated code then names no other GPU, and a candidate has no second GPU for hidden work.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

VISIBLE = "CUDA_VISIBLE_DEVICES"


def alone(device: str) -> tuple[str, dict[str, str]]:
    """Return the name of `device` in a process that sees no other GPU, and the environment
    variables for it; the device itself and no variables on the CPU."""
    if device == "cpu":
        return device, {}
    return "cuda:0", {VISIBLE: physical(device)}


def physical(device: str) -> str:
    """Return CUDA's physical name of this process's `device` ("cuda:1"): a number, or a UUID if
    CUDA_VISIBLE_DEVICES has UUIDs."""
    index = int(device.partition(":")[2] or 0)
    visible = os.environ.get(VISIBLE)
    names = [name.strip() for name in visible.split(",")] if visible else []
    return names[index] if index < len(names) else str(index)


def seen(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of a process that select its visible GPUs."""
    return {VISIBLE: environment[VISIBLE]} if VISIBLE in environment else {}
