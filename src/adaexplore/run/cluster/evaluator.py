"""The evaluator of one problem on the devices of a fleet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import InfrastructureError
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed
from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use, uses_from_json
from adaexplore.run.cluster.device import JudgingOrder
from adaexplore.run.cluster.fleet import Fleet, ToughWorkError
from adaexplore.run.cluster.remote import DeviceLostError, Remote

_JOB_GRACE_S = 120.0  # for a server to start


class ClusterEvaluator:
    """An `Evaluator` for many threads, which judges on every device of a fleet.

    The facts of the first device hold for its kind, which is that of the fleet. Each further device
    makes the reference its own before its first candidate. A candidate goes to the device that has
    its parent if that is free. Where a device is lost, its candidate is judged on another.
    """

    def __init__(self, fleet: Fleet, order: JudgingOrder) -> None:
        self._fleet = fleet
        self._order = order
        self._preparing = threading.Lock()
        self._facts: ReferenceFacts | None = None
        self._seen: dict[str, Remote] = {}
        self._tell: Callable[[str], None] = lambda _: None
        self._closings = 0

    def listen(self, tell: Callable[[str], None]) -> None:
        """See `TellsNews.listen`."""
        self._tell = tell

    def prepare(self) -> ReferenceFacts:
        """See `Evaluator.prepare`."""
        with self._preparing:
            if self._facts is None:
                found = self._fleet.timed(lambda d: self._judged(d, "prepare"), self._tell)
                self._facts = ReferenceFacts.from_json(found)
            return self._facts

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """See `Evaluator.evaluate`; waits for a device that is free and keeps its time."""
        self.prepare()
        prefer = self._seen.get(parent.digest) if parent else None

        def work(device: Remote) -> Evaluation:
            found = self._judged(device, "evaluate", candidate, parent, again)
            verdict = evaluation_from_json(found)
            if isinstance(verdict, Failed) and verdict.status == "infra_error":
                raise DeviceLostError(f"{device.name} fails: {verdict.reason}")
            if isinstance(verdict, Passed):
                self._seen[candidate.digest] = device
            return verdict

        try:
            return self._fleet.timed(work, self._tell, prefer)
        except ToughWorkError as error:
            return Failed("infra_error", str(error))

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """See `TriesUses.try_uses`; none where the trials take devices down."""
        self.prepare()
        try:
            found = self._fleet.untimed(lambda d: self._call(d, "try_uses", candidate), self._tell)
        except ToughWorkError:
            return ()
        return uses_from_json(found)

    def environment(self) -> Environment:
        """Describe the machine of a device."""
        found = self._fleet.untimed(lambda d: d.call("describe", self._order), self._tell)
        return Environment.from_json(found)

    def run_job(
        self,
        entry: str,
        request: Mapping[str, Any],
        timeout_s: float,
        *,
        confined: Literal["cpu", "gpu"] | None = None,
        readable: Sequence[str] = (),
    ) -> dict[str, Any]:
        """See `RunJob`; a device runs jobs beside what it judges."""
        arguments = (self._order, entry, dict(request), timeout_s, confined, tuple(readable))
        limit_s = timeout_s + _JOB_GRACE_S
        found: dict[str, Any] = self._fleet.beside(
            lambda device: device.call("run_job", *arguments, timeout_s=limit_s)
        )
        return found

    def close(self) -> None:
        """See `Evaluator.close`; the devices stay with the fleet."""
        self._closings += 1
        self._fleet.tell_all("close", self._order)

    def _judged(self, device: Remote, method: str, *arguments: Any) -> Any:
        """Call a method of the judge; `DeviceLostError` where it is lost, unless we closed it."""
        closings = self._closings
        try:
            return self._call(device, method, *arguments)
        except InfrastructureError as error:
            if self._closings != closings:
                raise
            raise DeviceLostError(f"{device.name} fails: {error}") from error

    def _call(self, device: Remote, method: str, *arguments: Any) -> Any:
        """Call a method on the judge of this problem, for as long as that may take at most."""
        longest_s: float = device.call("open", self._order)
        return device.call(method, self._order, *arguments, timeout_s=longest_s)
