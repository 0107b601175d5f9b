"""The process that holds one device of a cluster: a Ray actor on the device's machine."""

from __future__ import annotations

import os
import platform
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.core.verdict.uses import uses_to_json
from adaexplore.core.version import __version__
from adaexplore.evaluate.judge.evaluators.pool import EvaluatorPool, evaluators_for
from adaexplore.run.processes import describe, kind_of_evaluator, start_server
from adaexplore.sandbox.cores import gpus_here
from adaexplore.sandbox.gpus import VISIBLE, alone
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer, Worker, WorkerDiedError
from adaexplore.sandbox.walls.isolation import missing_for_strangers
from adaexplore.sandbox.walls.limits import STRANGERS

_MOST_JUDGES = 4
"""Problems whose judges keep their references on a device: a campaign goes back and forth."""
MOST_AT_ONCE = 4
_CANARY = "adaexplore.evaluate.timing.canary:main"
_CANARY_S = 120.0
_OF_RAY = "RAY_RAYLET_PID"


@dataclass(frozen=True, slots=True)
class JudgingOrder:
    """A problem (`Problem.to_json`) and how to judge its candidates, as `LocalEvaluator` takes it.

    With `strangers`, the problem is by people who are not trusted.
    """

    problem: Mapping[str, Any]
    timeout_s: float
    memory_bytes: int
    brief: bool = False
    strangers: bool = False

    @property
    def key(self) -> str:
        """The identity of the order on a device."""
        return repr(asdict(self))


def longest_canary_s(order: JudgingOrder) -> float:
    """Return the longest that a canary takes: others may be at work on the device before it."""
    return _CANARY_S + 2 * order.timeout_s


@dataclass(eq=False, slots=True)
class _Judges:
    """The judges of an order, the seconds of their longest call, and the calls under way."""

    pool: EvaluatorPool
    longest_s: float
    calls: int = 0


class Device:
    """Judges candidates of several problems on the one device that Ray gives to this process.

    Confined processes run the code of candidates, as on a machine without Ray. On a GPU, candidates
    are compiled while another is timed, as many at once as `begin` says. All methods take and
    return plain data, and may be called from several threads.
    """

    def __init__(self) -> None:
        _forget_threads_of_ray()
        self._guard = threading.Lock()
        self._servers: dict[tuple[str, bool], ForkServer] = {}
        self._judges: OrderedDict[str, _Judges] = OrderedDict()
        self._seats = 1
        self._canary_guard = threading.Lock()
        self._canary: Worker | None = None

    def begin(self, order: JudgingOrder, release: str) -> dict[str, Any]:
        """Begin with the processes of an order; return the device's name, id, kind and seats.

        Raises `BadInputError` where this machine cannot judge for the caller.
        """
        if release != __version__:
            raise BadInputError(
                f"{platform.node()} has adaexplore {__version__}, not {release}; install the same "
                "on all nodes of the cluster"
            )
        missing = missing_for_strangers() if order.strangers else []
        if missing:
            raise BadInputError(
                f"{platform.node()} cannot confine problems by strangers: {'; '.join(missing)}"
            )
        if order.strangers:
            own = f"adaexplore-{os.getpid()}-strangers-"  # swept once this process has ended
            os.environ[STRANGERS] = tempfile.mkdtemp(prefix=own)
        found = Environment.from_json(self.describe(order))
        place = f"gpu {os.environ.get(VISIBLE, '0')}" if found.gpu else "the cpu"
        self._seats = evaluators_for(MOST_AT_ONCE, gpus_here()) if found.gpu else 1
        return {
            "seats": self._seats,
            "name": f"{place} of {platform.node()}",
            "id": f"{platform.node()} {place}",
            "kind": found.gpu or f"{found.cpu}, {found.threads} threads",
        }

    def describe(self, order: JudgingOrder) -> dict[str, Any]:
        """Describe the machine for an order, as `Environment.to_json`."""
        problem = Problem.from_json(order.problem)
        return describe(self._server(problem), problem).to_json()

    def canary_us(self, order: JudgingOrder) -> float:
        """Time the canary, with the device to itself."""
        device, environment = alone(order.problem["device"])
        with self._canary_guard:
            if self._canary is None:
                server = self._server(Problem.from_json(order.problem))
                self._canary = server.spawn(_CANARY, name="canary", environment=environment)
            try:
                found = self._canary.call({"device": device}, longest_canary_s(order))
            except (TimeoutError, WorkerDiedError) as error:
                self._canary = None
                raise InfrastructureError(f"its canary ended: {error}") from error
        time_us: float = found["time_us"]
        return time_us

    def open(self, order: JudgingOrder) -> float:
        """Make room for the judges of an order; return the seconds that a call takes at most."""
        return self._judges_of(order).longest_s

    def prepare(self, order: JudgingOrder) -> dict[str, Any]:
        """Return the facts about the reference, as `ReferenceFacts.to_json`."""
        with self._pool_of(order) as pool:
            return pool.prepare().to_json()

    def evaluate(
        self, order: JudgingOrder, candidate: Candidate, parent: Candidate | None, again: bool
    ) -> dict[str, Any]:
        """Return a verdict, as `evaluation_to_json`."""
        with self._pool_of(order) as pool:
            return evaluation_to_json(pool.evaluate(candidate, parent, again=again))

    def try_uses(self, order: JudgingOrder, candidate: Candidate) -> list[dict[str, Any]]:
        """Return the uses of a winner, as `uses_to_json`."""
        with self._pool_of(order) as pool:
            return uses_to_json(pool.try_uses(candidate))

    def run_job(
        self,
        order: JudgingOrder,
        entry: str,
        request: Mapping[str, Any],
        timeout_s: float,
        confined: Literal["cpu", "gpu"] | None,
        readable: Sequence[str],
    ) -> dict[str, Any]:
        """Run a job for an order; see `sandbox.jobs.run_job`."""
        return run_job(
            self._server(Problem.from_json(order.problem)),
            entry,
            request,
            timeout_s,
            environment=alone(order.problem["device"])[1],
            confined=confined,
            readable=readable,
        )

    def close(self, order: JudgingOrder) -> None:
        """End the judges of an order; a call that waits for one ends with an error."""
        with self._guard:
            judges = self._judges.pop(order.key, None)
        if judges:
            judges.pool.close()

    def _server(self, problem: Problem) -> ForkServer:
        with self._guard:
            key = (problem.language, problem.target is not None)
            if key not in self._servers:
                self._servers[key] = start_server(problem)
            return self._servers[key]

    @contextmanager
    def _pool_of(self, order: JudgingOrder) -> Iterator[EvaluatorPool]:
        """The judges of an order, which nobody but `close` ends meanwhile."""
        judges = self._judges_of(order, calls=1)
        try:
            yield judges.pool
        finally:
            with self._guard:
                judges.calls -= 1
                over = self._surplus()
                if not judges.calls and self._judges.get(order.key) is not judges:
                    over.append(judges)  # closed meanwhile, and perhaps prepared after that
            for each in over:
                each.pool.close()

    def _judges_of(self, order: JudgingOrder, calls: int = 0) -> _Judges:
        """Return the judges of an order, with more calls under way; end surplus ones."""
        problem = Problem.from_json(order.problem)
        server = self._server(problem)
        with self._guard:
            if order.key not in self._judges:
                self._judges[order.key] = self._new_judges(server, problem, order)
            self._judges.move_to_end(order.key)
            judges = self._judges[order.key]
            judges.calls += calls
            over = self._surplus()
        for each in over:
            each.pool.close()
        return judges

    def _surplus(self) -> list[_Judges]:
        """Take out idle judges, those used least recently, where there are too many."""
        newest = next(reversed(self._judges), None)
        idle = [key for key, each in self._judges.items() if not each.calls and key != newest]
        return [self._judges.pop(key) for key in idle[: max(len(self._judges) - _MOST_JUDGES, 0)]]

    def _new_judges(self, server: ForkServer, problem: Problem, order: JudgingOrder) -> _Judges:
        evaluators = [
            kind_of_evaluator(problem)(
                server,
                problem,
                timeout_s=order.timeout_s,
                memory_bytes=order.memory_bytes,
                brief=order.brief,
                beside=number,
            )
            for number in range(self._seats)
        ]
        # other problems of a campaign share the device: a second reference only where it is needed
        pool = EvaluatorPool(evaluators, on_gpu=problem.device != "cpu", ahead=False)
        in_turn = 2 if self._seats > 1 else 1  # a call may wait for another, to have the device
        return _Judges(pool, in_turn * evaluators[0].longest_s)


def _forget_threads_of_ray() -> None:
    """Take back the number of threads that Ray sets for a process with few of the processors.

    Timings have the whole device, by its lock. A number that the node was started with stays.
    """
    name = "OMP_NUM_THREADS"
    node = Path(f"/proc/{os.environ.get(_OF_RAY, '')}/environ")
    if not any(part.startswith(f"{name}=".encode()) for part in node.read_bytes().split(b"\0")):
        os.environ.pop(name, None)
