"""The kernel's account of threads: how long they ran, and waited for a processor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def waited_us(pids: Iterable[int]) -> float:
    """Return how long all threads of some processes were ready to run and had no processor.

    In microseconds, since the threads began. Threads that have ended, and kernels that keep no such
    account, add nothing.
    """
    return sum(thread_account_us(pid, thread)[1] for pid in pids for thread in threads_of(pid))


def threads_of(pid: int) -> list[int]:
    """Return the threads of a process; none if it has ended."""
    try:
        return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def thread_account_us(pid: int, thread: int) -> tuple[float, float]:
    """Return for how long a thread ran and waited, in microseconds (proc_pid_schedstat(5)).

    Both are zero if the thread has ended, or the kernel keeps no such account.
    """
    try:
        ran, waited, *_ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
    except (OSError, ValueError):
        return 0.0, 0.0
    return int(ran) / 1000.0, int(waited) / 1000.0
