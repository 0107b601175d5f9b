"""Supervision of a candidate's process and its descendants while a caller waits for its reply.

The waiting process supervises by itself, ten times a second and at every request to create a
process or thread: no further thread or process can disturb a measurement.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from adaexplore.sandbox.family import (
    family,
    is_in_family,
    proportional_bytes,
    resident_bytes,
    tasks,
    written_bytes,
)
from adaexplore.sandbox.walls.limits import ResourceLimits
from adaexplore.sandbox.walls.seccomp import Question, answer, receive

INTERVAL_S = 0.1
_MAX_FILES = 50_000

Resource = Literal["processes", "memory", "disk"]


class LimitExceededError(RuntimeError):
    """A worker exceeded one of its resource limits and was ended."""

    def __init__(self, resource: Resource, what: str) -> None:
        self.resource = resource
        super().__init__(what)

    def __reduce__(self) -> tuple[type[LimitExceededError], tuple[Resource, str]]:
        """Let it travel between machines."""
        return type(self), (self.resource, str(self))


class Watchdog:
    """Enforces the limits of one worker and all its descendants.

    `listener` is the descriptor of its seccomp supervisor, which the watchdog owns. Without one
    (None), processes are only counted periodically.
    """

    def __init__(
        self, pid: int, folder: Path, limits: ResourceLimits, listener: int | None
    ) -> None:
        self._pid = pid
        self._folder = folder
        self._limits = limits
        self.listener = listener
        self.ended = os.pidfd_open(pid)
        """Descriptor that becomes readable when the worker ends."""
        self._given_bytes = 0
        self._inherited_bytes = resident_bytes(pid)  # from the fork server
        self.created = 0
        """Number of threads and processes that were created so far."""
        self._tasks = 1  # an upper bound of the live ones
        self._alone = listener is not None  # no descendants
        self._free = _free(folder)

    def give(self, fds: Sequence[int]) -> None:
        """Exclude shared memory passed to the worker from its usage."""
        self._given_bytes += sum(os.fstat(fd).st_size for fd in fds)

    def close(self) -> None:
        """End the supervision, after the worker has ended."""
        for fd in (self.listener, self.ended):
            if fd is not None:
                os.close(fd)

    def answer(self) -> None:
        """Answer one question, or raise `LimitExceededError`."""
        assert self.listener is not None
        question = receive(self.listener)
        if question is None:
            return
        allow = self._may_create(question) if question.creates else self._may_name(question.target)
        answer(self.listener, question, allow=allow)

    def look(self) -> None:
        """Raise `LimitExceededError` if the worker exceeds memory, disk or its process count."""
        pids = [self._pid]
        if not self._alone:
            pids = family(self._pid)
            self._alone = self.listener is not None and len(pids) == 1
            self._check_tasks(pids)
        self._check_memory(pids)
        self._check_disk(pids)

    def _may_create(self, question: Question) -> bool:
        self._alone = self._alone and question.creates == "thread"
        self._tasks += 1
        self.created += 1
        if self._limits.tasks is not None and self._tasks > self._limits.tasks:
            self._check_tasks(family(self._pid))
        return True

    def _may_name(self, target: int) -> bool:
        if target < -1:  # a process group is identified by its leader
            target = -target
        return target > 0 and is_in_family(target, self._pid)

    def _check_tasks(self, pids: list[int]) -> None:
        self._tasks = tasks(pids)
        limit = self._limits.tasks
        if limit is not None and self._tasks >= limit:
            raise LimitExceededError(
                "processes", f"more than {limit} processes and threads at once"
            )

    def _check_memory(self, pids: list[int]) -> None:
        limit = self._limits.total_bytes
        if limit is None:
            return
        inherited = self._inherited_bytes
        own = sum(max(resident_bytes(pid) - inherited, 0) for pid in pids) - self._given_bytes
        if own > limit and len(pids) > 1:  # an upper bound: shared pages counted more than once
            share = inherited * len(pids) // (len(pids) + 1)  # the fork server maps them too
            own = proportional_bytes(pids) - share - self._given_bytes
        if own > limit:
            raise LimitExceededError(
                "memory", f"more than {limit / 2**30:.3g} GiB of memory in all"
            )

    def _check_disk(self, pids: list[int]) -> None:
        """Measure the folder only if the disk has lost that much space, for whatever reason."""
        limit = self._limits.folder_bytes
        if limit is None:
            return
        free_bytes, free_files = _free(self._folder)
        if self._free[0] - free_bytes > limit:
            kept_bytes, _ = _content(self._folder)
            if max(kept_bytes, written_bytes(pids)) > limit:
                raise LimitExceededError("disk", f"wrote more than {limit / 2**30:.3g} GiB to disk")
        elif self._free[1] - free_files > _MAX_FILES and _content(self._folder)[1] > _MAX_FILES:
            raise LimitExceededError("disk", f"wrote more than {_MAX_FILES} files")


def _free(folder: Path) -> tuple[int, int]:
    """Return the free bytes and files of the folder's file system."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_ffree


def _content(folder: Path) -> tuple[int, int]:
    """Return the bytes on disk and the number of files in a folder, recursively."""
    size = count = 0
    folders = [str(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # removed in the meantime
                    size += 512 * entry.stat(follow_symlinks=False).st_blocks
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    return size, count
