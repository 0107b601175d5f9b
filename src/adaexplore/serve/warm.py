"""Workers that have finished a job and keep its prepared reference for the next one."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from adaexplore.sandbox.family import family, resident_bytes

_WEIGH_S = 5.0
_END_S = 20.0
"""Time for a worker to end by itself once it has no further job."""


@dataclass(frozen=True, slots=True)
class WarmLimits:
    """The most workers that wait for another job, their time, and their memory together.

    The memory is that of all their processes, the pages that they share counted in each. With
    `alone`, for a GPU, none waits while a job of another problem runs: their references would share
    the memory of the device.
    """

    workers: int = 0
    seconds: float = 600.0
    bytes: int = 8 << 30
    alone: bool = False


class HasProcess(Protocol):
    """A worker's process, which ends when its standard input is closed."""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process."""
        ...


_Worker = TypeVar("_Worker", bound=HasProcess)


class WarmPool(Generic[_Worker]):
    """Workers that wait, by a key of the jobs that they can do; not thread-safe.

    Where there are too many, the one that has waited the longest ends.
    """

    def __init__(self, limits: WarmLimits) -> None:
        self._limits = limits
        self._waiting: dict[str, tuple[_Worker, float]] = {}  # the longest first
        self._ending: list[tuple[subprocess.Popen[bytes], float]] = []
        self._weighed = 0.0

    @property
    def is_open(self) -> bool:
        """True where workers may wait at all."""
        return self._limits.workers > 0

    def give(self, key: str, worker: _Worker) -> None:
        """Let a worker wait for a job with this key."""
        self._end(key)
        self._waiting[key] = worker, time.monotonic()
        self.trim()

    def take(self, key: str) -> _Worker | None:
        """Return a worker for a job with this key, None where none waits."""
        worker, _ = self._waiting.pop(key, (None, 0.0))
        if worker is not None and worker.process.poll() is not None:
            return None
        return worker

    def make_room(self) -> None:
        """End those that may not wait beside a job of another problem."""
        if self._limits.alone:
            self._end(*self._waiting)

    def trim(self) -> None:
        """End those that are too many, too large together, or have waited too long."""
        now = time.monotonic()
        late = now - self._limits.seconds
        self._end(*(key for key, (_, since) in self._waiting.items() if since < late))
        self._end(*list(self._waiting)[: -self._limits.workers or None])
        if now - self._weighed > _WEIGH_S:
            self._weighed = now
            while self._waiting and self._bytes() > self._limits.bytes:
                self._end(next(iter(self._waiting)))
        self._reap(now)

    def close(self) -> None:
        """End all at once."""
        self._end(*self._waiting)
        self._reap(float("inf"))

    def _bytes(self) -> int:
        pids = [worker.process.pid for worker, _ in self._waiting.values()]
        return sum(resident_bytes(member) for pid in pids for member in family(pid))

    def _end(self, *keys: str) -> None:
        for key in keys:
            worker, _ = self._waiting.pop(key, (None, 0.0))
            if worker is not None:
                assert worker.process.stdin is not None
                worker.process.stdin.close()
                self._ending.append((worker.process, time.monotonic() + _END_S))

    def _reap(self, now: float) -> None:
        for process, until in self._ending:
            if now > until:
                process.kill()
                process.wait()
        self._ending = [one for one in self._ending if one[0].poll() is None]
