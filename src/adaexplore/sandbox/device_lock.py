"""One lock per device, between all processes of this machine.

Timings taken while another process uses the same device can be wrong by a factor of two. Whoever
uses the device holds the lock shared; whoever times holds it exclusively.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = Path("/tmp")  # not TMPDIR, which differs between workers: all must meet at one file
_EXCLUSIVE: set[str] = set()  # what this process holds


@contextmanager
def device_lock(device: str, *, exclusive: bool) -> Iterator[None]:
    """Holds the lock of `device` ("cpu", "cuda:0"); waits for it as long as it takes.

    A process that holds it exclusively may take it again inside. Not for threads.
    """
    if device in _EXCLUSIVE:
        yield
        return
    fd = _open(lock_file(device))
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        if exclusive:
            _EXCLUSIVE.add(device)
        yield
    finally:
        _EXCLUSIVE.discard(device)
        os.close(fd)


def lock_file(device: str) -> Path:
    """Where the lock of a device lies."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "") if device.startswith("cuda") else ""
    return _FOLDER / re.sub(r"[^\w.]+", "-", f"adaexplore-{visible}-{device}.lock")


def _open(path: Path) -> int:
    try:  # another user's file in a sticky folder can be opened, but not with O_CREAT
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
