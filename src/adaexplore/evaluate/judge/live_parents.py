"""Candidates that passed, kept alive and stopped, so that their children are timed beside them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.sandbox.family import children, stat_fields
from adaexplore.sandbox.process import Worker

_LIMIT = {"cpu": 4, "cuda": 2}
_FREE_SHARE = 0.5  # of the GPU's memory: with less, the next candidate needs it more


class LiveParent:
    """A live parent during one evaluation; `drop` ends its process."""

    def __init__(self, talk: Conversation, end: Callable[[], None]) -> None:
        self.talk = talk
        self.lost = False
        self._end = end

    def drop(self) -> None:
        """End its process: it can no longer be timed."""
        self.lost = True
        self._end()


class LiveParents:
    """The processes of the last candidates that passed, stopped until the next request."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._live: OrderedDict[str, tuple[Worker, Conversation]] = OrderedDict()

    def add(self, candidate: Candidate, worker: Worker, talk: Conversation) -> None:
        """Take over the worker: keep it, or end it where it has children or memory is short."""
        talk.freeze()
        if not _is_alone(worker.pid) or candidate.digest in self._live:
            worker.end()
            return
        self._live[candidate.digest] = (worker, talk)
        limit = _LIMIT[self._device.partition(":")[0]] if self._has_memory() else 0
        while len(self._live) > limit:
            _, (oldest, _) = self._live.popitem(last=False)
            oldest.end()

    def find(self, candidate: Candidate | None, deadline: float) -> LiveParent | None:
        """Return a live candidate, to be asked until a new deadline; None if it is not there."""
        if candidate is None or candidate.digest not in self._live:
            return None
        digest = candidate.digest
        self._live.move_to_end(digest)
        worker, talk = self._live[digest]
        if not _is_alone(worker.pid):  # it may have got children while it was timed
            self._live.pop(digest)[0].end()
            return None
        talk.deadline = deadline
        return LiveParent(talk, lambda: self._live.pop(digest)[0].end())

    def clear(self) -> bool:
        """End all; return whether there were any."""
        any_live = bool(self._live)
        while self._live:
            _, (worker, _) = self._live.popitem()
            worker.end()
        return any_live

    def _has_memory(self) -> bool:
        if self._device == "cpu":
            return True
        free, total = torch.cuda.mem_get_info(self._device)
        return free > _FREE_SHARE * total


def _is_alone(pid: int) -> bool:
    """Return whether a process lives and has no children, which would go unwatched."""
    fields = stat_fields(pid)
    return bool(fields) and fields[0] not in "ZX" and not children(pid)
