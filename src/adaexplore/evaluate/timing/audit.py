"""Audit of a candidate's timed blocks: the judge's observations against the reported times.

The candidate's process takes the times, and the candidate may control its clock and its code. The
audit uses nothing from that process; it uses the judge's clock and the operating system's accounts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.evaluate.timing.cpu_time import CpuMeter
from adaexplore.evaluate.timing.waiting import thread_account_us

_TOLERANCE = 0.25  # of the claimed time: variation of the machine
_SLACK_US = {
    "cpu": 500.0,
    "cuda": 1500.0,
}  # of a block: messages, wake-ups, a GPU's switch
_CALL_SLACK_US = {"cpu": 10.0, "cuda": 2.0}
_CALL_NOISE_US = 20.0
"""The additional time of an honest candidate's call on a machine that many share."""
_CPU_WAKING_US = 200.0  # waking the pool's threads before a call, if they share a core
_MIN_BUSY_S = 0.05
_IDLE_SHARE = 0.05
_MIN_IDLE_CPU_S = 0.05
IDLE_LATENCY_US = 1000.0
"""An idle device runs a trivial kernel in less; beside another process it takes a time slice."""
IDLE_KERNELS = "its kernels run while it is told to do nothing: work out of the timer's sight"


@dataclass(frozen=True, slots=True)
class Account:
    """The operating system's account of the candidate's process so far.

    `waited_us` is the time in which the answering thread was ready to run and had no processor,
    plus the same time of the judge; `cpu_s` is all CPU time used.
    """

    waited_us: float
    cpu_s: float


class Audit:
    """The audit of one candidate's process, which works on `device` with `threads` threads."""

    def __init__(self, pid: int, device: str, threads: int) -> None:
        self._pid = pid
        self._meter = CpuMeter(pid)
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
        """Return the account up to now, for `block`."""
        waited_us = _first_waited_us(self._pid) + _first_waited_us(os.getpid())
        return Account(waited_us, self._meter.read())

    def block(
        self,
        start: Account,
        end: Account,
        wall_us: float,
        times_us: Sequence[float],
        overhead_us: float,
    ) -> list[float]:
        """Record a block of calls that took `wall_us`, and the reported times of its calls.

        `overhead_us` is the time of a call outside its timed window (flushing the cache, handing
        over the outputs), which the judge measured on the baselines. Returns the times, each with
        its part of the unexplained time: a small part may be noise, but no candidate may gain by
        it.
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
        """Record the time of a trivial kernel on the device while the candidate was stopped."""
        self._latencies_us.append(latency_us)

    def idle_from_now(self) -> None:
        """Begin a span in which the candidate has no request."""
        self._idle_since = (time.monotonic(), self.account())

    def idle_until_now(self) -> None:
        """End the span: the candidate gets a request next."""
        if self._idle_since is not None:
            since_s, since = self._idle_since
            self._idle_s += time.monotonic() - since_s
            self._idle_cpu_s += self.account().cpu_s - since.cpu_s
            self._idle_since = None

    def objection(self) -> str | None:
        """Return the reason not to believe the times, in one line; None if there is none."""
        if self._unexplained:
            missing, claimed, count = self._least_unexplained()
            if missing > max(_TOLERANCE * claimed, 2 * self._slack_us, count * _CALL_NOISE_US):
                return (
                    f"a block of calls takes {missing + claimed:.0f} us by the judge's clock and "
                    f"{claimed:.0f} us by the one in its process: work out of the timer's sight"
                )
        if self._busy_s > (1 + _TOLERANCE) * self._accounted_s + _MIN_BUSY_S:
            return (
                f"its calls used {self._busy_s:.2f} s of CPU time, and their times account for "
                f"{self._accounted_s:.2f} s: work out of the timer's sight"
            )
        if self._idle_cpu_s > max(_IDLE_SHARE * self._idle_s, _MIN_IDLE_CPU_S):
            return (
                f"it worked {self._idle_cpu_s:.2f} s while it was told to do nothing: "
                "work out of the timer's sight"
            )
        if self._latencies_us and min(self._latencies_us) > IDLE_LATENCY_US:
            return IDLE_KERNELS
        return None

    def _least_unexplained(self) -> tuple[float, float, int]:
        """Return the full block with the least unexplained time.

        The short first block can hide little. The least counts, because noise only adds time, and
        the unexplained time of the other blocks is added to their times.
        """
        longest = max(count for _, _, count in self._unexplained)
        return min(block for block in self._unexplained if 2 * block[2] >= longest)


def _first_waited_us(pid: int) -> float:
    """Return for how long the first thread of a process waited for a processor."""
    return thread_account_us(pid, pid)[1]
