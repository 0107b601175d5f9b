"""Supervision of a candidate's process and its descendants while somebody waits for its answer.

The waiting process does it itself, ten times a second and whenever one of them asks to create a
process: there is no further thread or process that could disturb a measurement.
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
from adaexplore.sandbox.limits import ResourceLimits
from adaexplore.sandbox.seccomp import Question, answer, receive

INTERVAL_S = 0.1
_MOST_FILES = 50_000

Resource = Literal["processes", "memory", "disk"]


class LimitExceededError(RuntimeError):
    """A worker took more of a resource than its limits allow, and was ended for it."""

    def __init__(self, resource: Resource, what: str) -> None:
        self.resource = resource
        super().__init__(what)


class Watchdog:
    """Holds one worker, with all its descendants, to its limits.

    `listener` is its seccomp supervisor's descriptor, taken over; None where it has none, and then
    processes are only counted now and then.
    """

    def __init__(
        self, pid: int, folder: Path, limits: ResourceLimits, listener: int | None
    ) -> None:
        self._pid = pid
        self._folder = folder
        self._limits = limits
        self.listener = listener
        self.ended = os.pidfd_open(pid)
        """A descriptor that is readable when the worker has ended."""
        self._given_bytes = 0
        self._inherited_bytes = resident_bytes(pid)  # from the fork server, as all it forks
        self._tasks = 1  # at most so many are alive
        self._alone = listener is not None  # no descendants
        self._free = _free(folder)

    def give(self, fds: Sequence[int]) -> None:
        """Notes shared memory that the worker was handed: it does not count as its own."""
        self._given_bytes += sum(os.fstat(fd).st_size for fd in fds)

    def close(self) -> None:
        """Ends the supervision, after the worker."""
        for fd in (self.listener, self.ended):
            if fd is not None:
                os.close(fd)

    def answer(self) -> None:
        """Answers one question, or raises `LimitExceededError`."""
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
        if self._limits.tasks is not None and self._tasks > self._limits.tasks:
            self._check_tasks(family(self._pid))
        return True

    def _may_name(self, target: int) -> bool:
        if target < -1:  # a group is known by its leader
            target = -target
        return target > 0 and is_in_family(target, self._pid)

    def _check_tasks(self, pids: list[int]) -> None:
        self._tasks = tasks(pids)
        most = self._limits.tasks
        if most is not None and self._tasks >= most:
            raise LimitExceededError("processes", f"more than {most} processes and threads at once")

    def _check_memory(self, pids: list[int]) -> None:
        most = self._limits.total_bytes
        if most is None:
            return
        inherited = self._inherited_bytes
        own = sum(max(resident_bytes(pid) - inherited, 0) for pid in pids) - self._given_bytes
        # An upper bound, which costs little; what several have in common is counted in each.
        if own > most and proportional_bytes(pids) - inherited > most:
            raise LimitExceededError("memory", f"more than {most / 2**30:.3g} GiB of memory in all")

    def _check_disk(self, pids: list[int]) -> None:
        """Looks closer only if the disk has lost that much, to whomever."""
        most = self._limits.folder_bytes
        if most is None:
            return
        free_bytes, free_files = _free(self._folder)
        if self._free[0] - free_bytes > most:
            kept_bytes, _ = _content(self._folder)
            if max(kept_bytes, written_bytes(pids)) > most:
                raise LimitExceededError("disk", f"wrote more than {most / 2**30:.3g} GiB to disk")
        elif self._free[1] - free_files > _MOST_FILES and _content(self._folder)[1] > _MOST_FILES:
            raise LimitExceededError("disk", f"wrote more than {_MOST_FILES} files")


def _free(folder: Path) -> tuple[int, int]:
    """Bytes and files that the folder's file system has room for."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_ffree


def _content(folder: Path) -> tuple[int, int]:
    """Bytes on disk and number of the files in a folder, however deep."""
    size = count = 0
    folders = [str(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # it was removed meanwhile
                    size += 512 * entry.stat(follow_symlinks=False).st_blocks
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    return size, count
