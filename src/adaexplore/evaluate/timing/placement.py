"""Placement of the threads of a timed process on processors during a timed block."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from adaexplore.evaluate.timing.cpu_time import thread_account_us
from adaexplore.sandbox.family import threads_of


@contextlib.contextmanager
def threads_apart(pid: int) -> Iterator[None]:
    """Keep the busiest threads of a process on processors of their own in the body.

    Threads that wake each other at every barrier tend to share one processor until the kernel
    balances them, which takes longer than a block after a stop, or after the first thread slept.
    Threads that are created in the body share the processor of the thread that creates them.
    """
    before: dict[int, set[int]] = {}
    processors = sorted(os.sched_getaffinity(0))
    for thread, processor in zip(_busiest_threads(pid), processors, strict=False):
        with contextlib.suppress(OSError):  # it has ended, or may not be placed here
            before[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {processor})
    try:
        yield
    finally:
        for thread, allowed in before.items():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, allowed)


def _busiest_threads(pid: int) -> list[int]:
    """Return the threads of a process, those with the most CPU time first."""
    return sorted(
        threads_of(pid), key=lambda thread: thread_account_us(pid, thread)[0], reverse=True
    )
