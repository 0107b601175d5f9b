"""Audit of a candidate's timed blocks: the judge's observations against the reported times.

The candidate's process takes the times, and the candidate may control its clock and its code. The
audit uses nothing from that process; it uses the judge's clock and the operating system's accounts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from adaexplore.evaluate.timing.cpu_time import CpuMeter, thread_account_us
from adaexplore.evaluate.timing.turnstile.protocol import HEAD_START_S, Passages

_TOLERANCE = 0.25  # of the claimed time: variation of the machine
_SLACK_US = {"cpu": 1000.0, "cuda": 3000.0}  # of a block, before it is refused
_CALL_SLACK_US = {"cpu": 10.0, "cuda": 4.0}  # two processes at a turnstile for a baseline's one
_DISTURBED = 20  # one window of so many may be
_SLACK_SHARE, _LEAST_SLACK_US = 0.1, 1.0
_UNEVEN = 0.5
_CALL_NOISE_US = {"cpu": 20.0, "cuda": 100.0}
"""The additional time of an honest candidate's call on a busy machine: less is charged alone."""
_ENTERING_SLACK, _ENTERING_SLACK_US = 1.5, 50.0  # short calls must not pay for a busy host
_DELIVERING_SLACK = 2.0  # a confined process launches more slowly than the judge
_CPU_WAKING_US = 200.0  # waking the pool's threads before a call, if they share a core
_ASLEEP_US = 10.0  # CPU time of a process that is asleep: it may be woken for a moment
_MIN_BUSY_S = 0.05
_IDLE_SHARE = 0.05
_MIN_IDLE_CPU_S = 0.05
IDLE_LATENCY_US = 1000.0
"""An idle device runs a trivial kernel in less; beside another process it takes a time slice."""
IDLE_KERNELS = "its kernels run while it is told to do nothing: work out of the timer's sight"


@dataclass(frozen=True, slots=True)
class ProcessAccount:
    """The operating system's account of the candidate's process so far.

    `waited_us` is the time in which the answering thread was ready to run and had no processor,
    plus the same time of the judge; `cpu_s` is all CPU time used.
    """

    waited_us: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Own:
    """What the judge found on its own calls, those of the baselines.

    `overhead_us` is the time of a call outside its timed window (passing the turnstile, flushing
    the cache, handing over the outputs), `excess` how uneven a block of calls was (see `excess`).
    `entering_us` is the time in which the host asked for the inputs of a call on a GPU, or 0;
    `delivering_us` that in which it launched what follows a call: the delivery of its outputs.
    """

    overhead_us: float
    excess: float = 0.0
    entering_us: float = 0.0
    delivering_us: float = 0.0

    @property
    def head_start_s(self) -> float:
        """The time to enqueue a call and what follows it, before a GPU begins with the call.

        A slow host takes as long to deliver as to launch a short call. No candidate must pay for
        that, since the baselines' windows do not have it.
        """
        return HEAD_START_S + _DELIVERING_SLACK * self.delivering_us / 1e6


@dataclass(frozen=True, slots=True)
class _AuditedBlock:
    missing_us: float
    claimed_us: float
    count: int
    uneven: float
    open_us: float


class Audit:
    """The audit of one candidate's process, which works on `device` with `threads` threads."""

    def __init__(self, pid: int, device: str, threads: int) -> None:
        self._pid = pid
        self._meter = CpuMeter(pid)
        self._threads = threads
        kind = device.partition(":")[0]
        self._slack_us = _SLACK_US[kind]
        self._kind = kind
        self._waking_us = _CPU_WAKING_US if kind == "cpu" else 0.0
        self._blocks: list[_AuditedBlock] = []
        self._busy_s = self._accounted_s = 0.0
        self._latencies_us: list[float] = []
        self._idle_since: tuple[float, ProcessAccount] | None = None
        self._idle_s = self._idle_cpu_s = 0.0

    def account(self) -> ProcessAccount:
        """Return the account up to now, for `block`."""
        waited_us = _first_waited_us(self._pid) + _first_waited_us(os.getpid())
        return ProcessAccount(waited_us, self._meter.read())

    def block(
        self,
        start: ProcessAccount,
        end: ProcessAccount,
        passages: Passages,
        times_us: Sequence[float],
        own: Own,
    ) -> None:
        """Record a block of calls: the judge's windows and the reported times.

        `own` is what the judge found on the baselines.
        """
        windows_us = self._windows_us(passages)
        count, claimed_us = len(times_us), sum(times_us)
        open_us = [w - t - own.overhead_us for w, t in zip(windows_us, times_us, strict=True)]
        waited_us = end.waited_us - start.waited_us
        missing_us = sum(open_us) - waited_us - count * self._waking_us
        uneven = excess(times_us) - waited_us / (count * median(times_us)) - own.excess
        self._busy_s += end.cpu_s - start.cpu_s
        around_us = count * (own.overhead_us + self._waking_us) + passages.between_us
        self._accounted_s += self._threads * (claimed_us + around_us) / 1e6
        # Times that are told too short by turns would leave nothing open in half of the windows.
        typical_us = median(windows_us) - own.overhead_us - median(times_us)
        left_us = max(median(open_us), typical_us, self._mean_open_us(open_us))
        left_us -= self._call_slack_us(median(times_us))
        left_us += launched_unseen_us(passages.entering_us, own)
        self._blocks.append(_AuditedBlock(missing_us, claimed_us, count, uneven, left_us))

    def _mean_open_us(self, open_us: Sequence[float]) -> float:
        """Return the mean, on a GPU alone: there the windows are the device's, not the hosts'.

        Calls that are told too short in fewer than half of the windows show in it. Some are left
        out: the judge may have lost its processor. No window makes up for another.
        """
        if self._kind == "cpu":
            return 0.0
        counted = sorted(open_us)[: len(open_us) - len(open_us) // _DISTURBED]
        return fmean(max(left, 0.0) for left in counted)

    def open_us(self) -> float:
        """Return what the last block's windows leave open in a typical call, beyond the slack.

        A small part may be noise, but no candidate may gain by it. It is charged by the median over
        rounds: noise that adds to some and takes from none would make every candidate slower.
        """
        return self._blocks[-1].open_us

    def _windows_us(self, passages: Passages) -> list[float]:
        """Return the windows, each with the work that was done while its inputs were opened."""
        return [
            window_us + max(worked_us - _ASLEEP_US, 0.0)
            for window_us, worked_us in zip(passages.windows_us, passages.worked_us, strict=True)
        ]

    def _call_slack_us(self, told_us: float) -> float:
        """Return what a window may leave open; little for a short call on the CPU.

        Else a call of some microseconds could be told to take next to nothing.
        """
        most_us = _CALL_SLACK_US[self._kind]
        if self._kind != "cpu":
            return most_us
        return min(most_us, max(_LEAST_SLACK_US, _SLACK_SHARE * told_us))

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
        if self._blocks:
            least = min(self._full_blocks(), key=lambda block: block.missing_us)
            missing, claimed = least.missing_us, least.claimed_us
            noise_us = least.count * _CALL_NOISE_US[self._kind]
            if missing > max(_TOLERANCE * claimed, self._slack_us, noise_us):
                return (
                    f"a block of calls takes {missing + claimed:.0f} us by the judge's clock and "
                    f"{claimed:.0f} us by the one in its process: work out of the timer's sight"
                )
            uneven = min(block.uneven for block in self._full_blocks())
            if uneven > _UNEVEN:
                return (
                    f"the mean of its calls is {uneven:.0%} further above their median than that "
                    "of the baselines, in every block: some calls do the work of others"
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
        if self._latencies_us and median(self._latencies_us) > IDLE_LATENCY_US:
            return IDLE_KERNELS
        return None

    def _full_blocks(self) -> list[_AuditedBlock]:
        """Return the blocks that are about as long as the longest.

        The short first block shows little. Of the others the best counts, because noise only makes
        them worse, and the unexplained time of all is added to their times.
        """
        longest = max(block.count for block in self._blocks)
        return [block for block in self._blocks if 2 * block.count >= longest]


def launched_unseen_us(entering_us: Sequence[float], own: Own) -> float:
    """Return the time in which a typical call may have been launched before its window.

    A process that asks late, when all its kernels are enqueued, would be told the time of the
    device alone. `own` is what the judge found on its own calls.
    """
    if not entering_us:
        return 0.0
    allowed_us = _ENTERING_SLACK * own.entering_us + 1e6 * own.head_start_s + _ENTERING_SLACK_US
    return max(median(entering_us) - allowed_us, 0.0)


def excess(times_us: Sequence[float]) -> float:
    """Return how far the mean of times is above their median, as a share of the median."""
    middle = median(times_us)
    return max(fmean(times_us) / middle - 1.0, 0.0)


def _first_waited_us(pid: int) -> float:
    """Return for how long the first thread of a process waited for a processor."""
    return thread_account_us(pid, pid)[1]
