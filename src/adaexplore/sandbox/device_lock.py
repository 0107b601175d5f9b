"""One lock per device, between all processes of this machine.

Timings taken while another process uses the same device can be wrong by a factor of two. Whoever
uses the device holds the lock shared; whoever times holds it exclusively. Who waits to time has
everybody after it wait as well: those who share would otherwise never leave it a gap.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adaexplore.sandbox.gpus import physical

_FOLDER = Path("/tmp")  # not TMPDIR, which differs between workers: all must meet at one file
_mine = threading.local()


@contextmanager
def device_lock(device: str, *, exclusive: bool) -> Iterator[None]:
    """Holds the lock of `device` ("cpu", "cuda:0"); waits for it as long as it takes.

    A thread that holds it may take it again inside, but not exclusively what it shares.
    """
    held = _held()
    if device in held:
        _, is_exclusive = held[device]
        assert is_exclusive or not exclusive
        yield
        return
    fd = _open(lock_file(device))
    try:
        _take(fd, device, exclusive)
        held[device] = fd, exclusive
        yield
    finally:
        held.pop(device, None)
        os.close(fd)


@contextmanager
def device_lent(device: str) -> Iterator[None]:
    """Gives back what this thread holds of a GPU's lock, if anything, and takes it again after.

    For long work on the processors in the middle of using a GPU. On the CPU nothing is given back:
    there such work is what others must be kept from.
    """
    fd, exclusive = _held().get(device, (None, False))
    if fd is None or device == "cpu":
        yield
        return
    fcntl.flock(fd, fcntl.LOCK_UN)
    try:
        yield
    finally:
        _take(fd, device, exclusive)


def lock_file(device: str) -> Path:
    """Where the lock of a device lies; one GPU has one, whatever a process calls it."""
    name = f"cuda-{physical(device)}" if device.startswith("cuda") else device
    return _FOLDER / re.sub(r"[^\w.]+", "-", f"adaexplore-{name}.lock")


def _held() -> dict[str, tuple[int, bool]]:
    """What this thread holds: descriptors by device, and whether exclusively."""
    if not hasattr(_mine, "held"):
        _mine.held = {}
    held: dict[str, tuple[int, bool]] = _mine.held
    return held


def _take(fd: int, device: str, exclusive: bool) -> None:
    gate = _open(lock_file(device).with_suffix(".gate"))
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    finally:
        os.close(gate)


def _open(path: Path) -> int:
    try:  # another user's file in a sticky folder can be opened, but not with O_CREAT
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
