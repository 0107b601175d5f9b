"""Time that threads wait for a processor while other programs use it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path


def waited_us(pids: Iterable[int]) -> float:
    """Return how long all threads of some processes were ready to run and had no processor.

    In microseconds, since the threads began (proc_pid_schedstat(5)). Threads that have ended, and
    kernels that keep no such account, add nothing.
    """
    return sum(_thread_waited_us(task) for pid in pids for task in _threads(pid))


def _threads(pid: int) -> list[Path]:
    with contextlib.suppress(OSError):  # the process has ended
        return list(Path(f"/proc/{pid}/task").iterdir())
    return []


def _thread_waited_us(task: Path) -> float:
    try:
        return int((task / "schedstat").read_text().split()[1]) / 1000.0
    except (OSError, IndexError):
        return 0.0
