"""A process and its descendants, as /proc shows them."""

from __future__ import annotations

import contextlib
from pathlib import Path

_GONE = (FileNotFoundError, ProcessLookupError)


def children(pid: int) -> list[int]:
    """The children of a process, born or adopted."""
    found: list[int] = []
    with contextlib.suppress(*_GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(*_GONE):  # that thread has ended
                found += map(int, (task / "children").read_text().split())
    return found


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for member in found:  # grows as it goes
        found += children(member)
    return found


def tasks(pids: list[int]) -> int:
    """How many processes and threads these are; one that has ended but was not collected counts."""
    count = 0
    for pid in pids:
        with contextlib.suppress(*_GONE):
            count += len(list(Path(f"/proc/{pid}/task").iterdir()))
    return count


def is_in_family(task: int, pid: int) -> bool:
    """Whether a process or thread belongs to `pid` or one of its descendants."""
    while task > 1:
        status = _fields(f"/proc/{task}/status")
        if not status:
            return False
        if int(status["Tgid"]) == pid:
            return True
        task = int(status["PPid"])
    return False


def resident_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process, swapped out or not; others may share it."""
    return _bytes(_fields(f"/proc/{pid}/status"), ("RssAnon", "RssShmem", "VmSwap"))


def proportional_bytes(pids: list[int]) -> int:
    """The same of several, what they share counted once; slow, for it reads page tables."""
    names = ("Pss_Anon", "Pss_Shmem", "SwapPss")
    return sum(_bytes(_fields(f"/proc/{pid}/smaps_rollup"), names) for pid in pids)


def written_bytes(pids: list[int]) -> int:
    """What processes and their collected children ever wrote, to files, pipes and mapped files."""
    total = 0
    for pid in pids:
        fields = _fields(f"/proc/{pid}/io")
        total += max(int(fields.get("wchar", 0)), int(fields.get("write_bytes", 0)))
    return total


def _fields(path: str) -> dict[str, str]:
    """The "name: value" lines of a file in /proc; none where the process has ended."""
    try:
        text = Path(path).read_text()
    except (*_GONE, PermissionError):
        return {}
    return {name: value for name, _, value in (line.partition(":") for line in text.splitlines())}


def _bytes(fields: dict[str, str], names: tuple[str, ...]) -> int:
    return sum(1024 * int(fields[name].split()[0]) for name in names if name in fields)
