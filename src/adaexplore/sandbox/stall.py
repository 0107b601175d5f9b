"""Stalls: a request to a worker that neither ends nor shows the work of a compiler."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from adaexplore.sandbox.family import family, stat_fields

_AT_WORK = (["R"], ["D"])


class StallWatch:
    """Ends a worker once a request has shown no progress for `quiet_s` seconds.

    A request makes progress when it ends, when files appear in the worker's folder, where compilers
    keep what they make, and while a process that the worker started is at work. `end` ends the
    worker; it is called by a thread of the watch's own.
    """

    def __init__(self, pid: int, folder: Path, quiet_s: float, end: Callable[[], object]) -> None:
        self.quiet_s = quiet_s
        self.stalled = False
        self._pid = pid
        self._folder = folder
        self._end = end
        self._asked_at: float | None = None
        self._paused_s = 0.0
        self._is_paused = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> StallWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Mark the time of a request."""
        self._asked_at = self._now()
        try:
            yield
        finally:
            self._asked_at = None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out the time of the body, in which the worker is stopped."""
        began = time.monotonic()
        self._is_paused = True
        try:
            yield
        finally:
            self._paused_s += time.monotonic() - began
            self._is_paused = False

    def _now(self) -> float:
        return time.monotonic() - self._paused_s

    def _look(self) -> None:
        known, progress_at = _made(self._folder), self._now()
        while not self._over.wait(min(self.quiet_s / 10, 1.0)):
            made = _made(self._folder)
            if made != known or _starts_work(self._pid):
                known, progress_at = made, self._now()
            asked_at = self._asked_at
            if asked_at is None or self._is_paused:
                continue
            if self._now() - max(asked_at, progress_at) > self.quiet_s:
                self.stalled = True
                self._end()
                return


def _made(folder: Path) -> frozenset[str]:
    """Return the paths below a folder; none where folders come and go, or lie too deep."""
    with contextlib.suppress(OSError, RecursionError):
        return frozenset(map(str, folder.rglob("*")))
    return frozenset()


def _starts_work(pid: int) -> bool:
    """Return True while a descendant of a process runs."""
    return any(stat_fields(member)[:1] in _AT_WORK for member in family(pid)[1:])
