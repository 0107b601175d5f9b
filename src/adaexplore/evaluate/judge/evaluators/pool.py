"""Several evaluators of one problem as one: candidates are compiled while another is measured.

Each evaluator has a judge of its own, with a reference of its own. The device's lock keeps them
from disturbing each other's measurements: only what needs no device, or need not be alone on it,
goes on side by side.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import AdaExploreError, InfrastructureError
from adaexplore.core.protocols.evaluator import Evaluator, TriesUses
from adaexplore.core.verdict.evaluation import Evaluation, Passed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.judge.reasons import is_out_of_room

_MOST = 4  # on an H200 an evaluation holds the device for a third to two thirds of its time
_CORES_EACH = 4


def evaluators_for(parallel: int, devices: int = 1, problems: int = 1) -> int:
    """Return the number of evaluators of a problem on a device for so many steps in flight.

    By this machine's processors, which `devices` share. So many problems share the device: the
    reference of each evaluator takes some of its memory, and time to prepare.
    """
    cores = len(os.sched_getaffinity(0)) // max(devices, 1)
    return max(min(parallel, _MOST // problems, cores // _CORES_EACH), 1)


class EvaluatorPool:
    """An `Evaluator` for many threads, made of several that are for one each.

    The first is prepared by `prepare`, the others after it behind the scenes; one that cannot be
    (the device has no memory for another reference) is left out. With `ahead` false, they are
    prepared once a candidate waits for an evaluator. A candidate goes to the evaluator
    that has seen its parent if that is free, since only there the two can be timed side by side,
    and otherwise to any that is. One that runs out of a GPU's memory is tried once more with the
    other evaluators ended, so that the verdict does not depend on them. If there is enough then,
    the pool goes on with one evaluator less.
    """

    def __init__(
        self, evaluators: Sequence[Evaluator], *, on_gpu: bool = False, ahead: bool = True
    ) -> None:
        self._first, *self._others = evaluators
        self._on_gpu = on_gpu
        self._ahead = ahead
        self._facts = ReferenceFacts()
        self._preparing = threading.Lock()
        self._changed = threading.Condition()
        self._ready: list[Evaluator] = []
        self._free: list[Evaluator] = []
        self._seen: dict[str, Evaluator] = {}
        self._reserved = False  # for the one who wants to be alone
        self._helper: threading.Thread | None = None

    def prepare(self) -> ReferenceFacts:
        """See `base.Evaluator.prepare`."""
        with self._preparing:
            if not self._ready:
                self._facts = self._first.prepare()
                with self._changed:
                    self._add(self._first)
                    if self._ahead:
                        self._prepare_others()
            return self._facts

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """See `base.Evaluator.evaluate`; waits for an evaluator that is free."""
        self.prepare()
        with self._taken(parent) as evaluator:
            verdict = evaluator.evaluate(candidate, parent, again=again)
            if isinstance(verdict, Passed):
                self._seen[candidate.digest] = evaluator
        if _is_short(verdict) and self._on_gpu and self._others:
            with self._alone() as evaluator:
                verdict = evaluator.evaluate(candidate, again=again)
                if self._others and not _is_short(verdict):
                    self._others.pop()
        return verdict

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """See `TriesUses.try_uses`; waits for an evaluator that is free."""
        self.prepare()
        with self._taken(candidate) as evaluator:
            return evaluator.try_uses(candidate) if isinstance(evaluator, TriesUses) else ()

    def close(self) -> None:
        """See `base.Evaluator.close`."""
        with self._changed:
            self._ready, self._free, self._helper = [], [], None
            self._changed.notify_all()
        for evaluator in (self._first, *self._others):
            evaluator.close()

    @contextmanager
    def _taken(self, parent: Candidate | None) -> Iterator[Evaluator]:
        """An evaluator, for this thread alone."""
        with self._changed:
            if self._ready and not self._free and not self._reserved and not self._helper:
                self._prepare_others()
            self._wait(lambda: bool(self._free) and not self._reserved)
            wanted = self._seen.get(parent.digest) if parent else None
            evaluator = wanted if wanted in self._free else self._free[0]
            self._free.remove(evaluator)
        try:
            yield evaluator
        finally:
            with self._changed:
                if evaluator in self._ready:  # else all were closed meanwhile
                    self._free.append(evaluator)
                    self._changed.notify_all()

    @contextmanager
    def _alone(self) -> Iterator[Evaluator]:
        """The first evaluator, with the others ended; they are prepared again afterwards."""
        with self._changed:
            self._wait(lambda: not self._reserved)
            self._reserved = True
            try:
                self._wait(lambda: len(self._free) == len(self._ready))
            except InfrastructureError:
                self._reserved = False
                raise
            self._ready, self._free = [self._first], []
            helper, self._helper = self._helper, None
        try:
            for other in self._others:
                other.close()
            if helper:
                helper.join()
            yield self._first
        finally:
            with self._changed:
                self._reserved = False
                if self._ready:
                    self._free.append(self._first)
                    if self._ahead:
                        self._prepare_others()
                self._changed.notify_all()

    def _wait(self, until: Callable[[], bool]) -> None:
        """Waits for a condition; `InfrastructureError` where the pool is closed meanwhile."""
        self._changed.wait_for(lambda: until() or not self._ready)
        if not self._ready:
            raise InfrastructureError("the evaluators were closed")

    def _prepare_others(self) -> None:
        self._helper = threading.Thread(target=self._prepare_in_turn, daemon=True)
        self._helper.start()

    def _prepare_in_turn(self) -> None:
        """Makes the other evaluators ready, one by one, until somebody else is to do it."""
        for evaluator in self._others:
            if self._helper is not threading.current_thread():
                return
            try:
                evaluator.prepare()
            except AdaExploreError:
                continue
            with self._changed:
                if self._helper is not threading.current_thread():
                    evaluator.close()
                    return
                self._add(evaluator)

    def _add(self, evaluator: Evaluator) -> None:
        self._ready.append(evaluator)
        self._free.append(evaluator)
        self._changed.notify_all()


def _is_short(verdict: Evaluation) -> bool:
    return verdict.status == "out_of_memory" or is_out_of_room(verdict)
