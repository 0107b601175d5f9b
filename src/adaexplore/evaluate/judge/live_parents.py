"""Candidates that passed, kept alive and still, so that their children can be timed beside them."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import torch

from adaexplore.core.candidate import Candidate
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.sandbox.family import children
from adaexplore.sandbox.process import Worker

_MOST = {"cpu": 4, "cuda": 2}
_FREE_SHARE = 0.5  # of the GPU's memory: with less, the next candidate needs it more


class KeptCandidates:
    """The processes of the last candidates that passed, stopped until they are asked again."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._kept: OrderedDict[str, tuple[Worker, Conversation]] = OrderedDict()

    def keep(self, candidate: Candidate, worker: Worker, talk: Conversation) -> None:
        """Takes over the worker: keeps it, or ends it where it is not alone or room is short."""
        talk.freeze()
        if not _is_alone(worker.pid) or candidate.digest in self._kept:
            worker.end()
            return
        self._kept[candidate.digest] = (worker, talk)
        most = _MOST[self._device.partition(":")[0]] if self._room() else 0
        while len(self._kept) > most:
            _, (oldest, _) = self._kept.popitem(last=False)
            oldest.end()

    def talk_to(self, candidate: Candidate | None, deadline: float) -> Conversation | None:
        """A conversation with a kept candidate until a new deadline, None if it is not there."""
        if candidate is None or candidate.digest not in self._kept:
            return None
        self._kept.move_to_end(candidate.digest)
        _, talk = self._kept[candidate.digest]
        talk.deadline = deadline
        return talk

    def drop(self, candidate: Candidate) -> None:
        """Ends a kept candidate."""
        worker, _ = self._kept.pop(candidate.digest)
        worker.end()

    def clear(self) -> bool:
        """Ends all; true if there were any."""
        any_kept = bool(self._kept)
        while self._kept:
            _, (worker, _) = self._kept.popitem()
            worker.end()
        return any_kept

    def _room(self) -> bool:
        if self._device == "cpu":
            return True
        free, total = torch.cuda.mem_get_info(self._device)
        return free > _FREE_SHARE * total


def _is_alone(pid: int) -> bool:
    """Whether a process lives and has no children, which nobody would watch while it is kept."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX" and not children(pid)
