"""One lock per device, between all processes of this machine.

Timings taken while another process uses the same device can be wrong by a factor of two. A process
that uses the device holds the lock shared, one that times holds it exclusively. Processes that
arrive while a timing waits queue up behind it; otherwise the sharing ones would starve it.

Who holds a GPU exclusively has the processor cores of its measurements meanwhile (see `cores`).
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from adaexplore.sandbox import cores
from adaexplore.sandbox.device_log import note
from adaexplore.sandbox.gpus import physical

LOCKS = "ADAEXPLORE_LOCKS"  # for tests, whose times nobody reads; not TMPDIR, which workers change


class _Mine(threading.local):
    """Locks of a thread by device, each with its descriptor and True if exclusive; those lent.

    `large` has the devices whose turn for large work it has, `waited_s` what it waited for all.
    `since` has the moment from which on a descriptor's lock is held.
    """

    def __init__(self) -> None:
        self.held: dict[str, tuple[int, bool]] = {}
        self.since: dict[int, float] = {}
        self.lent: set[str] = set()
        self.large: set[str] = set()
        self.waited_s = 0.0


_mine = _Mine()
_judges: dict[str, int] = {}
"""Descriptors of the files that the judges of a device share."""


@contextmanager
def device_lock(device: str, *, exclusive: bool) -> Iterator[None]:
    """Hold the lock of `device` ("cpu", "cuda:0"); wait for it without a timeout.

    The lock is reentrant for a thread, but a shared lock cannot become exclusive. A thread that has
    lent the device takes it as any other does.
    """
    held, lent = _mine.held, device in _mine.lent
    before = held.get(device)
    if before and not lent:
        _, is_exclusive = before
        assert is_exclusive or not exclusive
        yield
        return
    fd = _open(lock_file(device))
    try:
        _take(fd, device, exclusive)
        held[device] = fd, exclusive
        _mine.lent.discard(device)
        try:
            yield
        finally:
            if before:
                held[device] = before
                _mine.lent.add(device)
            else:
                del held[device]
            _release(fd, device, exclusive)
    finally:
        os.close(fd)


@contextmanager
def device_lent(device: str) -> Iterator[None]:
    """Release this thread's lock of a GPU, if it holds one, and take it again afterwards.

    For long work on the CPU in the middle of using a GPU. The lock of the CPU is not released,
    because such work would disturb timings there. Reentrant.
    """
    fd, exclusive = _mine.held.get(device, (None, False))
    if fd is None or device == "cpu" or device in _mine.lent:
        yield
        return
    _release(fd, device, exclusive)
    _mine.lent.add(device)
    try:
        yield
    finally:
        _take(fd, device, exclusive)
        _mine.lent.discard(device)


@contextmanager
def device_taken_back(device: str) -> Iterator[None]:
    """Hold the lock of a device that this thread has lent, for a part of `device_lent`'s body."""
    if device not in _mine.lent:
        yield
        return
    fd, exclusive = _mine.held[device]
    _take(fd, device, exclusive)
    _mine.lent.discard(device)
    try:
        yield
    finally:
        _release(fd, device, exclusive)
        _mine.lent.add(device)


@contextmanager
def large_turn(device: str) -> Iterator[None]:
    """Hold the turn to fill much of a device's memory, which one thread has at a time; reentrant.

    Wait for it without a timeout, with the device lent: whoever has the turn may stand back for
    those that time, and they wait for all that share the device.
    """
    if has_large_turn(device):
        yield
        return
    fd = _open(_turn_file(device))
    try:
        with device_lent(device), _waiting():
            fcntl.flock(fd, fcntl.LOCK_EX)
        _mine.large.add(device)
        yield
    finally:
        _mine.large.discard(device)
        os.close(fd)


def has_large_turn(device: str) -> bool:
    """Return whether this thread has the turn to fill much of a device's memory."""
    return device in _mine.large


def join_judges(device: str) -> None:
    """Count this process among the judges that keep references on a device, until it ends."""
    if device not in _judges:
        _judges[device] = _open(_judges_file(device))
    fcntl.flock(_judges[device], fcntl.LOCK_SH)


def has_other_judges(device: str) -> bool:
    """Return whether other processes have joined the judges of a device, as this one has."""
    fd = _judges[device]
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        fcntl.flock(fd, fcntl.LOCK_SH)
    return False


def is_wanted(device: str) -> bool:
    """Return whether somebody waits to have a device alone that this thread shares with others."""
    _, exclusive = _mine.held.get(device, (None, True))
    if exclusive or device in _mine.lent:
        return False
    gate = _open(_gate_file(device))
    try:
        fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(gate)
    return False


def stand_back(device: str) -> None:
    """Let those who wait have a device that this thread shares, and take it again after them.

    What this thread's use of the device left there must be at rest.
    """
    fd, exclusive = _mine.held[device]
    _release(fd, device, exclusive)
    _take(fd, device, exclusive)


class Stoppable(Protocol):
    """A process that can be stopped for a while."""

    def freeze(self) -> None:
        """Stop it until `thaw`."""

    def thaw(self) -> None:
        """Let it go on."""


def make_way(device: str, process: Stoppable, is_at_rest: Callable[[], bool]) -> float:
    """Stop a process and let those time who wait for its device; return the seconds that took.

    Not where its work on the device, which is asked for once it is stopped, does not come to rest.
    """
    if not is_wanted(device):
        return 0.0
    began = time.monotonic()
    process.freeze()
    try:
        if is_at_rest():
            stand_back(device)
    finally:
        process.thaw()
    return time.monotonic() - began


def holders(device: str) -> set[int]:
    """Return the processes that hold the lock of a device, those that the kernel shows here."""
    try:
        inode = lock_file(device).stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return set()
    locks = [line.split() for line in lines if " FLOCK " in line and "->" not in line]
    return {int(pid) for *_, pid, place, _, _ in locks if place.endswith(f":{inode}")} - {0}


def lock_file(device: str) -> Path:
    """Return the path of a device's lock; one GPU has one lock under all its names.

    It is in /tmp, which all processes of the machine share, or in the folder that the environment
    variable `ADAEXPLORE_LOCKS` names: processes with different folders disturb each other's times.
    """
    name = f"cuda-{physical(device)}" if device.startswith("cuda") else device
    folder = Path(os.environ.get(LOCKS, "/tmp"))
    return folder / re.sub(r"[^\w.]+", "-", f"adaexplore-{name}.lock")


def make_lock_files(device: str) -> list[Path]:
    """Make the files of a device's locks and return them, for processes that may make none."""
    files = [lock_file(device), _gate_file(device), _turn_file(device), _judges_file(device)]
    for file in files:
        os.close(_open(file))
    return files


def waited_s() -> float:
    """Return the seconds for which this thread has waited for devices and turns so far."""
    return _mine.waited_s


@contextmanager
def _waiting() -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        _mine.waited_s += time.monotonic() - began


def _take(fd: int, device: str, exclusive: bool) -> None:
    began = time.time()
    gate = _open(_gate_file(device))
    try:
        with _waiting():
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    finally:
        os.close(gate)
    _mine.since[fd] = time.time()
    if device == "cpu":
        return
    note("waited", began, exclusive=exclusive)
    if exclusive:
        cores.take(os.getpid())


def _release(fd: int, device: str, exclusive: bool) -> None:
    began = _mine.since.pop(fd, time.time())  # an interrupted `_take` leaves none
    if device != "cpu":
        note("held", began, exclusive=exclusive)
        if exclusive:
            cores.keep_off(os.getpid())
    fcntl.flock(fd, fcntl.LOCK_UN)


def _gate_file(device: str) -> Path:
    return lock_file(device).with_suffix(".gate")


def _turn_file(device: str) -> Path:
    return lock_file(device).with_suffix(".large")


def _judges_file(device: str) -> Path:
    return lock_file(device).with_suffix(".judges")


def _open(path: Path) -> int:
    try:  # another user's file in a sticky folder can be opened, but not with O_CREAT
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
