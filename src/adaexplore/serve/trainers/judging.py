"""Single candidates, judged for protocols of trainers: a verdict, or none yet.

Trainers take whatever is no verdict for a penalty. So a failure of the machine never ends a task:
the task is judged again when it is next asked about, and until then it is under way.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException
from starlette.concurrency import run_in_threadpool

from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.search.named_rewards import is_judged
from adaexplore.serve.accounts import Account
from adaexplore.serve.http.access import require
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import EvaluationOrder, JobInfo, ProblemSource, State
from adaexplore.serve.options import Bounds
from adaexplore.serve.orders import evaluation_job

_LOOK_S = 0.25
_AGAIN_S = 10.0
"""Time between a failure of the machine and the next attempt, in seconds."""
_MOST_WAITING = 64


@dataclass(frozen=True, slots=True)
class Attempt:
    """A candidate to judge: its problem, its source, and the options of the judge."""

    problem: ProblemSource
    source: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """State of a task: a `verdict` once there is one, or the `error` of its order."""

    state: State
    verdict: Evaluation | None = None
    error: str = ""

    @property
    def is_final(self) -> bool:
        """True for a task that nothing will change."""
        return self.verdict is not None or bool(self.error) or self.state == "cancelled"


class Judging:
    """Tasks by the names that their users give them, each a job of its own.

    `fixed` returns the fields of `Config` that the service sets for a user's jobs.
    """

    def __init__(
        self, jobs: Jobs, bounds: Bounds, fixed: Callable[[str], Mapping[str, str]]
    ) -> None:
        self._jobs = jobs
        self._bounds = bounds
        self._fixed = fixed
        self._waiting: dict[str, int] = {}

    def submit(self, account: Account, name: str, attempt: Attempt) -> JobInfo:
        """Queue a task, once however often it is sent.

        Raises `HTTPException` (409) for the name of another task, else as `Jobs.submit` does.
        """
        require(account, "evaluate")
        order = EvaluationOrder(
            problem=attempt.problem, candidates=[attempt.source], options=dict(attempt.options)
        )
        new = evaluation_job(order, self._bounds, self._fixed(account.user))
        job = self._jobs.submit(account, new, _key(name))
        if self._jobs.order(job.id) != new.order:
            raise HTTPException(409, f"{name[:64]!r} names another kernel; give each its own name")
        return job

    def outcome(self, account: Account, name: str) -> Outcome | None:
        """Return the state of a task, None for an unknown one; a failed machine tries again."""
        job = self._jobs.find_by_key(account.user, _key(name))
        if job is None:
            return None
        if job.state not in ("done", "failed"):
            return Outcome(job.state)
        result = self._jobs.result(job.id)
        if result.bad_input:
            return Outcome("failed", error=job.error)
        verdict = evaluation_from_json(result.verdicts[0]) if job.state == "done" else None
        if verdict and is_judged(verdict):
            return Outcome("done", verdict)
        if time.time() - (job.ended_at or 0.0) > _AGAIN_S:
            self._jobs.begin_again(job.id)
        return Outcome("queued")

    def cancel(self, account: Account, name: str) -> bool:
        """End a task; return whether there is one."""
        job = self._jobs.find_by_key(account.user, _key(name))
        if job:
            self._jobs.cancel(job.id)
        return job is not None

    async def wait(self, account: Account, name: str, most_s: float) -> Outcome:
        """Return the outcome of a task, or its state after `most_s` seconds.

        Returns at once where as many requests of the user wait as may.
        """
        waiting = self._waiting.get(account.user, 0)
        until = time.monotonic() + (most_s if waiting < _MOST_WAITING else 0.0)
        self._waiting[account.user] = waiting + 1
        try:
            while True:
                found = await run_in_threadpool(self.outcome, account, name)
                if found is None:
                    raise HTTPException(404, "no such task")
                if found.is_final or time.monotonic() >= until:
                    return found
                await asyncio.sleep(_LOOK_S)
        finally:
            self._waiting[account.user] -= 1


def _key(name: str) -> str:
    return f"task:{hashlib.sha256(name.encode()).hexdigest()[:48]}"
