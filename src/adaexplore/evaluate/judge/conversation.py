"""The judge's end of the exchange with a candidate's process, which may send anything."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from adaexplore.core import codec
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.judge.activities import Activities
from adaexplore.evaluate.judge.failures import raised
from adaexplore.evaluate.timing.turnstile.protocol import Turnstile
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.tensors import SharedTensor
from adaexplore.sandbox.process import Worker, WorkerDiedError
from adaexplore.sandbox.stall import StallWatch

_Reply = TypeVar("_Reply")

_UNDISTURBED_S, _BETWEEN_S = 5.0, 2.0
"""A request makes way for others once it has taken so long, and then again after a while."""


class Stop(Exception):  # noqa: N818 - not an error: it carries a verdict out of nested calls
    """Ends an evaluation with its verdict."""

    def __init__(self, verdict: Failed) -> None:
        self.verdict = verdict
        super().__init__(verdict.reason)


class Conversation:
    """Requests to one candidate's process, until `deadline` (by `time.monotonic`).

    `source` is the candidate's, in which exceptions are placed. `stage` describes the present
    activity, for the reader of the verdict, and `took_s` has the seconds of each activity so far.
    """

    def __init__(self, worker: Worker, deadline: float, source: str = "") -> None:
        self._worker = worker
        self._source = source
        self.deadline = deadline
        self._activities = Activities("being started")
        self._turnstile: Turnstile | None = None
        self._watch: StallWatch | None = None
        self._make_way: Callable[[], float] | None = None

    @property
    def stage(self) -> str:
        """The present activity."""
        return self._activities.present

    @stage.setter
    def stage(self, activity: str) -> None:
        self._activities.begin(activity)

    @property
    def took_s(self) -> dict[str, float]:
        """The seconds of each activity so far, and of waiting for the device."""
        return self._activities.took_s()

    @property
    def pid(self) -> int:
        """The id of the candidate's process."""
        return self._worker.pid

    def freeze(self) -> None:
        """See `Worker.freeze`."""
        self._worker.freeze()

    def thaw(self) -> None:
        """See `Worker.thaw`."""
        self._worker.thaw()

    @property
    def created_tasks(self) -> int:
        """The number of threads and processes that the candidate has created so far."""
        return self._worker.created_tasks

    def end(self) -> None:
        """End the candidate's process and all its descendants."""
        self._worker.kill()

    @contextlib.contextmanager
    def impatient(self, quiet_s: float) -> Iterator[None]:
        """End the candidate where one of its requests makes no progress for this long."""
        if math.isinf(quiet_s):
            yield
            return
        with StallWatch(self.pid, self._worker.folder, quiet_s, self._worker.kill) as self._watch:
            try:
                yield
            finally:
                self._watch = None

    @contextlib.contextmanager
    def considerate(self, make_way: Callable[[], float]) -> Iterator[None]:
        """Call `make_way` again and again while a request takes long, with the candidate stopped.

        It returns the seconds that it took, which count for no time limit.
        """
        self._make_way = make_way
        try:
            yield
        finally:
            self._make_way = None

    def ask(self, request: wire.Request[_Reply]) -> _Reply:
        """Send a request and return its reply.

        Raises `Stop` for an exception in the candidate's process and for a malformed reply,
        `TimeoutError` at the deadline and `WorkerDiedError` where the process ends.
        """
        return self._ask(request, ())

    def give(
        self,
        kind: Callable[..., wire.Request[wire.Done]],
        tensors: Sequence[SharedTensor],
        **fields: Any,
    ) -> None:
        """Send tensors in a request that has their handles; raises as `ask` does."""
        handles = tuple(shared.handle for shared in tensors)
        fds = [fd for shared in tensors for fd in shared.fds]
        self._ask(kind(handles=handles, **fields), fds)

    @property
    def turnstile(self) -> Turnstile:
        """The turnstile whose other end was given."""
        assert self._turnstile is not None
        return self._turnstile

    def give_turnstile(self, turnstile: Turnstile) -> None:
        """Give the other end of a turnstile, which this process then holds no more."""
        self._ask(wire.TakeTurnstile(), [turnstile.other_end])
        turnstile.forget_other_end()
        self._turnstile = turnstile

    def _ask(self, request: wire.Request[_Reply], fds: Sequence[int]) -> _Reply:
        left_s = max(self.deadline - time.monotonic(), 0.1)
        watch = self._watch
        try:
            with watch.request() if watch else contextlib.nullcontext():
                data = self._worker.call(
                    wire.encode(request), left_s, fds, make_way=self._way(time.monotonic())
                )
        except WorkerDiedError:
            if watch and watch.stalled:
                raise Stop(Failed("timeout", _stalled(watch.quiet_s, self.stage))) from None
            raise
        try:
            if "raised" not in data:
                return wire.read_reply(request, data)
            error = codec.read(wire.RaisedReply, data).raised
        except codec.MalformedError:
            reason = f"its process sent a malformed reply, while {self.stage}"
            raise Stop(Failed("rejected", reason)) from None
        raise Stop(raised(error, self.stage, self._source, self._worker.log_tail()))

    def _way(self, asked: float) -> Callable[[], float]:
        """Return a function that makes way for others once a request has taken long."""
        make_way = self._make_way
        next_at = asked + _UNDISTURBED_S

        def way() -> float:
            nonlocal next_at
            if make_way is None or time.monotonic() < next_at:
                return 0.0
            with self._watch.paused() if self._watch else contextlib.nullcontext():
                took_s = make_way()
            self.deadline += took_s
            next_at = time.monotonic() + (_BETWEEN_S if took_s else 0.0)
            return took_s

        return way


def _stalled(quiet_s: float, stage: str) -> str:
    return f"it hangs, while {stage}: it neither ended nor compiled anything for {quiet_s:.0f} s"
