"""Processes and their descendants, read from /proc."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

_GONE = (FileNotFoundError, ProcessLookupError)
_PF_EXITING = 0x4  # in the flags of /proc/<pid>/stat: linux/sched.h


def children(pid: int) -> list[int]:
    """Return the children of a process, adopted ones included."""
    found: list[int] = []
    with contextlib.suppress(*_GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(*_GONE):  # that thread has ended
                found += map(int, (task / "children").read_text().split())
    return found


def family(pid: int) -> list[int]:
    """Return the process and all its descendants."""
    found = [pid]
    for member in found:  # the list grows during iteration
        found += children(member)
    return found


def threads_of(pid: int) -> list[int]:
    """Return the threads of a process; none if it has ended."""
    try:
        return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def tasks(pids: list[int]) -> int:
    """Count processes and threads, ended ones that were not reaped included."""
    count = 0
    for pid in pids:
        with contextlib.suppress(*_GONE):
            count += len(list(Path(f"/proc/{pid}/task").iterdir()))
    return count


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; none of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def ends_by_itself(pid: int) -> bool:
    """Return true if a process has ended or is ending; its channel closes a little before its end.

    An end by the kernel's out-of-memory killer counts too.
    """
    for _ in range(20):
        fields = stat_fields(pid)
        if not fields or fields[0] in "ZX" or int(fields[6]) & _PF_EXITING:
            return True
        time.sleep(0.001)
    return False


def is_in_family(task: int, pid: int) -> bool:
    """Return true if a process or thread belongs to `pid` or one of its descendants."""
    while task > 1:
        status = _fields(f"/proc/{task}/status")
        if not status:
            return False
        if int(status["Tgid"]) == pid:
            return True
        task = int(status["PPid"])
    return False


def resident_bytes(pid: int) -> int:
    """Return the anonymous and shared memory of a process, swap included."""
    return _bytes(_fields(f"/proc/{pid}/status"), ("RssAnon", "RssShmem", "VmSwap"))


def proportional_bytes(pids: list[int]) -> int:
    """Return the memory of several processes, shared pages counted once; slow (page tables)."""
    names = ("Pss_Anon", "Pss_Shmem", "SwapPss")
    return sum(_bytes(_fields(f"/proc/{pid}/smaps_rollup"), names) for pid in pids)


def written_bytes(pids: list[int]) -> int:
    """Return all bytes written by processes and their reaped children, mapped files included."""
    total = 0
    for pid in pids:
        fields = _fields(f"/proc/{pid}/io")
        total += max(int(fields.get("wchar", 0)), int(fields.get("write_bytes", 0)))
    return total


def _fields(path: str) -> dict[str, str]:
    """Return the "name: value" lines of a file in /proc; none if the process has ended."""
    try:
        text = Path(path).read_text(errors="replace")
    except (*_GONE, PermissionError):
        return {}
    return {name: value for name, _, value in (line.partition(":") for line in text.splitlines())}


def _bytes(fields: dict[str, str], names: tuple[str, ...]) -> int:
    return sum(1024 * int(fields[name].split()[0]) for name in names if name in fields)
