"""Audit of a candidate's timed blocks: the judge's own observations against the told times.

Times are taken in the candidate's process, whose clock and whose code the candidate may have in
its hand. Nothing here comes from that process: only the judge's clock and the kernel's accounts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.sandbox.family import family

_TOLERANCE = 0.25  # of the claimed time: the machine's mood
_SLACK_US = {"cpu": 500.0, "cuda": 1500.0}  # of a block: messages, wake-ups, a GPU's new tenant
_CALL_SLACK_US = {"cpu": 10.0, "cuda": 2.0}
_CALL_NOISE_US = 20.0
"""What a call of an honest candidate may take besides, where many share a machine."""
_CPU_WAKING_US = 200.0  # the pool's threads before a call, if they share a core
_BUSY_LEAST_S = 0.05
_IDLE_SHARE = 0.05
_IDLE_LEAST_S = 0.05
IDLE_LATENCY_US = 1000.0
"""An idle device does next to nothing in less; beside another process's kernel it takes a slice."""
IDLE_KERNELS = "its kernels run while it is told to do nothing: work out of the timer's sight"

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Account:
    """The operating system's account of the candidate's process so far.

    `waited_us` is how long the thread that answers was ready to run and did not get a processor,
    and the judge's own with it; `cpu_s` all CPU time used.
    """

    waited_us: float
    cpu_s: float

    @staticmethod
    def of(pid: int) -> Account:
        """Return the account as of now."""
        return Account(_waited_us(pid) + _waited_us(os.getpid()), cpu_seconds(pid))


class Audit:
    """The account of one candidate's process, which works on `device` with `threads` threads."""

    def __init__(self, pid: int, device: str, threads: int) -> None:
        self._pid = pid
        self._threads = threads
        kind = device.partition(":")[0]
        self._slack_us = _SLACK_US[kind]
        self._call_slack_us = _CALL_SLACK_US[kind]
        self._waking_us = _CPU_WAKING_US if kind == "cpu" else 0.0
        self._unexplained: list[tuple[float, float, int]] = []
        self._busy_s = self._accounted_s = 0.0
        self._latencies_us: list[float] = []
        self._idle_since: tuple[float, Account] | None = None
        self._idle_s = self._idle_cpu_s = 0.0

    def account(self) -> Account:
        """The account as of now, to be given to `block`."""
        return Account.of(self._pid)

    def block(
        self,
        start: Account,
        end: Account,
        wall_us: float,
        times_us: Sequence[float],
        overhead_us: float,
    ) -> list[float]:
        """Notes a block of calls that took `wall_us`, and the times that were told of it.

        `overhead_us` is what a call takes besides its timed window (flushing the cache, handing
        over the outputs), measured on the baselines by the judge's own hand. Returns the times,
        each with its part of what is not accounted for: where that is little, it may be noise, but
        nobody shall gain by it.
        """
        count, claimed_us = len(times_us), sum(times_us)
        open_us = wall_us - claimed_us - count * overhead_us
        waited_us = end.waited_us - start.waited_us
        missing_us = open_us - waited_us - count * self._waking_us
        self._unexplained.append((missing_us, claimed_us, count))
        self._busy_s += end.cpu_s - start.cpu_s
        around_us = count * (overhead_us + self._waking_us)
        self._accounted_s += self._threads * (claimed_us + around_us) / 1e6
        part_us = max((open_us - self._slack_us) / count - self._call_slack_us, 0.0)
        return [t + part_us for t in times_us]

    def latency(self, latency_us: float) -> None:
        """Notes how long the device took for next to nothing while the candidate stood still."""
        self._latencies_us.append(latency_us)

    def idle_from_now(self) -> None:
        """The candidate is being told to do nothing."""
        self._idle_since = (time.monotonic(), self.account())

    def idle_until_now(self) -> None:
        """It is about to be told to go on."""
        if self._idle_since is not None:
            since_s, since = self._idle_since
            self._idle_s += time.monotonic() - since_s
            self._idle_cpu_s += self.account().cpu_s - since.cpu_s
            self._idle_since = None

    def objection(self) -> str | None:
        """Return the reason not to believe its times, in one line; None if there is none."""
        if self._unexplained:
            missing, claimed, count = self._least_unexplained()
            if missing > max(_TOLERANCE * claimed, 2 * self._slack_us, count * _CALL_NOISE_US):
                return (
                    f"a block of calls takes {missing + claimed:.0f} us by the judge's clock and "
                    f"{claimed:.0f} us by the one in its process: work out of the timer's sight"
                )
        if self._busy_s > (1 + _TOLERANCE) * self._accounted_s + _BUSY_LEAST_S:
            return (
                f"its calls used {self._busy_s:.2f} s of CPU time, and their times account for "
                f"{self._accounted_s:.2f} s: work out of the timer's sight"
            )
        if self._idle_cpu_s > max(_IDLE_SHARE * self._idle_s, _IDLE_LEAST_S):
            return (
                f"it worked {self._idle_cpu_s:.2f} s while it was told to do nothing: "
                "work out of the timer's sight"
            )
        if self._latencies_us and min(self._latencies_us) > IDLE_LATENCY_US:
            return IDLE_KERNELS
        return None

    def _least_unexplained(self) -> tuple[float, float, int]:
        """Of the full blocks; the first is short, and hides little for that.

        The least, since noise only ever adds, and what the others hide is added to their times.
        """
        longest = max(count for _, _, count in self._unexplained)
        return min(block for block in self._unexplained if 2 * block[2] >= longest)


def cpu_seconds(pid: int) -> float:
    """CPU time that a process, its ended children and its living descendants have used."""
    return sum(_cpu_seconds(member) for member in family(pid))


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) * _TICK_S


def _waited_us(pid: int) -> float:
    """Return the time that a first thread was ready and not running (proc_pid_schedstat(5))."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1000.0
    except (OSError, IndexError):  # it has ended, or this kernel does not tell
        return 0.0
