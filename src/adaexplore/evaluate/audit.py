"""What the judge sees of a candidate's timed blocks from outside, against what it was told.

Times are taken in the candidate's process, whose clock and whose code the candidate may have in
its hand. Nothing here comes from that process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median

_TOLERANCE = 0.25  # of the claimed time: the machine's mood
_SLACK_US = 500.0  # of a block: two messages and two wake-ups
_CPU_CALL_SLACK_US = 200.0  # waking the pool before a call, with both its threads on one core
_IDLE_SHARE = 0.25
_IDLE_LEAST_S = 0.15
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class Audit:
    """The account of one candidate's process, which works on `device`."""

    def __init__(self, pid: int, device: str) -> None:
        self._pid = pid
        self._call_slack_us = _CPU_CALL_SLACK_US if device == "cpu" else 0.0
        self._unexplained: list[tuple[float, float]] = []
        self._idle_since: tuple[float, float] | None = None
        self._idle_s = self._idle_cpu_s = 0.0

    def block(self, wall_us: float, times_us: Sequence[float], overhead_us: float) -> None:
        """Notes a block that took `wall_us` by the judge's clock, and the times of its calls.

        `overhead_us` is what a call takes besides its timed window (flushing the cache, handing
        over the outputs), measured on the baselines by the judge's own hand.
        """
        claimed_us = sum(times_us)
        around_us = len(times_us) * (overhead_us + self._call_slack_us)
        self._unexplained.append((wall_us - claimed_us - around_us, claimed_us))

    def idle_from(self, now_s: float) -> None:
        """The candidate has been told to do nothing, as of now."""
        self._idle_since = (now_s, cpu_seconds(self._pid))

    def idle_until(self, now_s: float) -> None:
        """It is about to be told to go on."""
        if self._idle_since is not None:
            since_s, cpu_s = self._idle_since
            self._idle_s += now_s - since_s
            self._idle_cpu_s += cpu_seconds(self._pid) - cpu_s
            self._idle_since = None

    def objection(self) -> str | None:
        """Why its times cannot be believed, in one line; None if they can."""
        if self._unexplained:
            missing = median(unexplained for unexplained, _ in self._unexplained)
            claimed = median(claimed for _, claimed in self._unexplained)
            if missing > max(_TOLERANCE * claimed, _SLACK_US):
                return (
                    f"a block of calls takes {missing + claimed:.0f} us by the judge's clock and "
                    f"{claimed:.0f} us by the one in its process: work out of the timer's sight"
                )
        if self._idle_cpu_s > max(_IDLE_SHARE * self._idle_s, _IDLE_LEAST_S):
            return (
                f"it worked {self._idle_cpu_s:.2f} s while it was told to do nothing: "
                "work out of the timer's sight"
            )
        return None


def cpu_seconds(pid: int) -> float:
    """CPU time that a process, its ended children and its living descendants have used."""
    seconds = 0.0
    with contextlib.suppress(OSError, IndexError):  # it has ended, or a descendant has
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds = sum(int(ticks) for ticks in fields[11:15]) * _TICK_S
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                seconds += cpu_seconds(int(child))
    return seconds
