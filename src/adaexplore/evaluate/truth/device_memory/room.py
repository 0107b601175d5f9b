"""Room in a device's memory: a reading of it, and a wait for more."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from adaexplore.sandbox.user.user_code import causes

LEFT_FREE = 1 / 4
"""The share of a GPU's memory that truths leave free."""

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LOOK_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """A GPU's memory in bytes: what this process can still get, all there is, what it holds."""

    free: int
    total: int
    held: int = 0

    @property
    def others(self) -> int:
        """What other processes hold."""
        return self.total - self.free - self.held


def leaves_room(room: FreeMemory, taken: int) -> bool:
    """Return True if `LEFT_FREE` of a GPU's memory stays free once so many bytes are taken."""
    return room.free - taken >= LEFT_FREE * room.total


def room_on(device: str) -> FreeMemory:
    """Read the memory of a GPU; what this process has cached is free for it.

    All zeros on the CPU, where the limit of the process decides.
    """
    if device == "cpu":
        return FreeMemory(0, 0)
    free, total = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_allocated(device)
    return FreeMemory(free + torch.cuda.memory_reserved(device) - held, total, held)


def release_memory() -> None:
    """Give the memory that this process no longer uses back to the device."""
    gc.collect()
    torch.cuda.empty_cache()  # does nothing where CUDA was not used


def wanted_by(error: BaseException, device: str) -> int:
    """Return the memory that would have been enough: what was held at most, and what was asked."""
    asked = max(asked_in(str(cause)) for cause in causes(error))
    return torch.cuda.max_memory_allocated(device) + asked


def asked_in(message: str) -> int:
    """Return the bytes that an allocator's message says were asked for; 0 without such words."""
    found = re.search(r"tried to allocate ([\d.]+) ?(\w+)", message, re.IGNORECASE)
    return int(float(found[1]) * _UNITS.get(found[2], 1)) if found else 0


def wait_for_room(
    wanted: int,
    read: Callable[[], FreeMemory],
    patience_s: float,
    may_come: Callable[[], bool] = lambda: True,
) -> bool:
    """Wait until `wanted` bytes are free, `patience_s` at most; return whether they are.

    No wait for more than the device has beside what this process holds, nor for room that may not
    come.
    """
    waited_s = 0.0
    while (room := read()).free < wanted:
        if wanted > room.total - room.held or waited_s >= patience_s or not may_come():
            return False
        time.sleep(_LOOK_EVERY_S)
        waited_s += _LOOK_EVERY_S
    return True
