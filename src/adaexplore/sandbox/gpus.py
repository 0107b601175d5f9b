"""One GPU for a process: which one `cuda:1` is, and how a process sees that one alone.

Events, streams and kernels belong to a process's current GPU, the first it sees, whatever device
its tensors lie on. So all who work for a problem see only its GPU, and call it `cuda:0`; generated
code then names no other either, and candidates have none to work on unseen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

VISIBLE = "CUDA_VISIBLE_DEVICES"


def alone(device: str) -> tuple[str, dict[str, str]]:
    """What `device` is called in a process that sees no other GPU, and the variables that have
    it so; the device itself and none on the CPU."""
    if device == "cpu":
        return device, {}
    return "cuda:0", {VISIBLE: physical(device)}


def physical(device: str) -> str:
    """What CUDA calls the GPU that this process calls `device` ("cuda:1"): a number, or a UUID
    where CUDA_VISIBLE_DEVICES has UUIDs."""
    index = int(device.partition(":")[2] or 0)
    visible = os.environ.get(VISIBLE)
    names = [name.strip() for name in visible.split(",")] if visible else []
    return names[index] if index < len(names) else str(index)


def seen(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a process that say which GPUs it sees."""
    return {VISIBLE: environment[VISIBLE]} if VISIBLE in environment else {}
