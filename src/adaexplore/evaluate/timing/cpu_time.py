"""CPU time of processes, and the time for which their threads wait for a processor."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from adaexplore.sandbox.family import family, stat_fields, threads_of

_OF_SCHEDULER = 2  # CPUCLOCK_SCHED: user and system time, as the scheduler counts them
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")

_Key = tuple[int, int]  # process id and start: ids are used again


@dataclass(frozen=True, slots=True)
class _Used:
    """CPU time of one process, and of its ended children that it has waited for."""

    own_s: float
    children_s: float


_NOTHING = _Used(0.0, 0.0)


class CpuMeter:
    """Adds up the CPU time of a process and its descendants.

    The time of a child that nobody waits for vanishes with it. So the time of each process is added
    up by itself, and no process that vanishes hides the work of another.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._known: dict[_Key, _Used] = {}
        self._total_s = 0.0

    def read(self) -> float:
        """Return the CPU time in seconds so far, never less than the last time."""
        now = dict(filter(None, map(_used, family(self._pid))))
        before = self._known
        own_s = sum(used.own_s - before.get(key, _NOTHING).own_s for key, used in now.items())
        waited_s = sum(
            used.children_s - before.get(key, _NOTHING).children_s for key, used in now.items()
        )
        gone = [used for key, used in before.items() if key not in now]
        known_s = sum(used.own_s + used.children_s for used in gone)  # part of what was waited for
        self._total_s += own_s + max(waited_s - known_s, 0.0)
        self._known = now
        return self._total_s


class CpuClocks:
    """The exact CPU time of a process and its descendants, for moments that are close together.

    `created` returns the number of threads and processes that the process has created so far: the
    list of its descendants is as old as that number. Their clocks take a microsecond to read.
    """

    def __init__(self, pid: int, created: Callable[[], int]) -> None:
        self._pid = pid
        self._created = created
        self._listed_at = -1
        self._clocks: list[int] = []

    def read_us(self) -> float:
        """Return the CPU time so far in microseconds, less that of processes that have ended."""
        created = self._created()
        if created != self._listed_at:
            self._listed_at = created
            self._clocks = _clocks(family(self._pid))
        total_ns = 0
        for clock in self._clocks:
            with contextlib.suppress(OSError):  # it has ended
                total_ns += time.clock_gettime_ns(clock)
        return total_ns / 1000.0


def own_waited_us() -> float:
    """Return `waited_us` of this process."""
    return waited_us([os.getpid()])


def waited_us(pids: Iterable[int]) -> float:
    """Return how long all threads of some processes were ready to run and had no processor.

    In microseconds, since the threads began. Threads that have ended, and kernels that keep no such
    account, add nothing.
    """
    return sum(thread_account_us(pid, thread)[1] for pid in pids for thread in threads_of(pid))


def thread_account_us(pid: int, thread: int) -> tuple[float, float]:
    """Return for how long a thread ran and waited, in microseconds (proc_pid_schedstat(5)).

    Both are zero if the thread has ended, or the kernel keeps no such account.
    """
    try:
        ran, waited, *_ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
    except (OSError, ValueError):
        return 0.0, 0.0
    return int(ran) / 1000.0, int(waited) / 1000.0


def _clocks(pids: Iterable[int]) -> list[int]:
    """Return the ids of the CPU clocks of processes (clock_getcpuclockid(3))."""
    return [(~pid << 3) | _OF_SCHEDULER for pid in pids]


def _used(pid: int) -> tuple[_Key, _Used] | None:
    """Read the account of a process; None if it has ended."""
    fields = stat_fields(pid)
    if not fields:
        return None
    own_s, children_s = ((int(fields[i]) + int(fields[i + 1])) * _TICK_S for i in (11, 13))
    return (pid, int(fields[19])), _Used(own_s, children_s)
