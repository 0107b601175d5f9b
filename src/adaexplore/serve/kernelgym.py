"""KernelGYM's protocol below `/kernelgym`, so that its clients need a URL alone.

The protocol has no token; clients give theirs in the URL, as `http://x:ada_...@host/kernelgym`. The
judge is this package's: numbers of trials, and what a client would switch off, are not read.
A failure of the machine is judged again (see `worker`), because clients take it for a penalty.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from adaexplore.core.evaluation import Evaluation, Passed
from adaexplore.core.evaluation_json import evaluation_from_json
from adaexplore.serve.access import Gate, require
from adaexplore.serve.accounts import Account
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import ENDED, EvaluationOrder, JobInfo, ProblemSource, Source
from adaexplore.serve.options import Bounds
from adaexplore.serve.orders import evaluation_job

_LOOK_S = 0.5
_MOST_TASKS = 100
_MOST_WAITING = 64
"""Requests of one user that wait for a result, for which a client that has left may count."""
_MOST_WAIT_S = 600.0

TaskState = Literal["pending", "processing", "completed", "failed", "timeout", "cancelled"]
TaskId = Annotated[str, Field(min_length=1, max_length=128)]
_STATES: Mapping[str, TaskState] = {
    "queued": "pending",
    "running": "processing",
    "failed": "failed",
    "cancelled": "cancelled",
}
_NOT_COMPLETED: Mapping[str, TaskState] = {
    "timeout": "timeout",
    "infra_error": "failed",
    "not_run": "failed",
}
"""Verdicts that the protocol has as states of a task."""


class Task(BaseModel):
    """A kernel to judge: `entry_point` names the reference's class, with "New" the kernel's.

    `backend` is the language of the kernel. `timeout` is how long the request waits, in seconds.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: TaskId
    reference_code: Source
    kernel_code: Source
    backend: str = "triton"
    entry_point: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)] = "Model"
    timeout: Annotated[float, Field(ge=1)] = 300


class TaskBatch(BaseModel):
    """Several tasks."""

    batch_id: TaskId
    tasks: Annotated[list[Task], Field(min_length=1, max_length=_MOST_TASKS)]


class TaskResult(BaseModel):
    """State of a task, and its result once it is completed; runtimes are in milliseconds."""

    task_id: str
    status: TaskState
    compiled: bool | None = None
    correctness: bool | None = None
    decoy_kernel: bool | None = None
    reference_runtime: float | None = None
    kernel_runtime: float | None = None
    speedup: float | None = None
    metadata: dict[str, Any] = {}
    error_message: str | None = None
    error_code: str | None = None


class BatchResult(BaseModel):
    """Results of a batch."""

    batch_id: str
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    results: list[TaskResult]
    batch_status: TaskState


def add_kernelgym(
    app: FastAPI, jobs: Jobs, gate: Gate, bounds: Bounds, is_alive: Callable[[], bool]
) -> None:
    """Add the routes to an application, which runs jobs while it `is_alive`."""
    caller = Annotated[Account, Depends(gate.account)]
    tasks = _Tasks(jobs, bounds)

    @app.post("/kernelgym/evaluate")
    async def evaluate(request: Request, task: Task, account: caller) -> TaskResult:
        """Judge a kernel; returns its result, or its state after `timeout` seconds."""
        job = await run_in_threadpool(tasks.submit, account, task)
        request.state.job = job.id
        return await tasks.settled(account, task)

    @app.post("/kernelgym/evaluate/batch")
    async def evaluate_batch(batch: TaskBatch, account: caller) -> BatchResult:
        """Judge several kernels; all must be submitted before one is waited for."""
        for task in batch.tasks:
            await run_in_threadpool(tasks.submit, account, task)
        results = [await tasks.settled(account, task) for task in batch.tasks]
        completed = sum(result.status == "completed" for result in results)
        return BatchResult(
            batch_id=batch.batch_id,
            total_tasks=len(results),
            completed_tasks=completed,
            failed_tasks=len(results) - completed,
            results=results,
            batch_status="completed",
        )

    @app.get("/kernelgym/status/{task_id}")
    def status(task_id: str, account: caller) -> TaskResult:
        """Return the state of a task."""
        return tasks.result(account, task_id)

    @app.get("/kernelgym/results/{task_id}")
    def results(task_id: str, account: caller) -> TaskResult:
        """Return the result of a task; 409 while it has none."""
        found = tasks.result(account, task_id)
        if found.status in {"pending", "processing"}:
            raise HTTPException(409, f"the task is {found.status}; it has no result yet")
        return found

    @app.get("/kernelgym/health")
    def health() -> Mapping[str, str]:
        """Return that tasks are judged; 503 where they are not."""
        if not is_alive():
            raise HTTPException(503, "the runner of jobs has ended; restart the service")
        return {"status": "healthy"}


class _Tasks:
    """Tasks of clients, each a job of its own that is found again by the client's id."""

    def __init__(self, jobs: Jobs, bounds: Bounds) -> None:
        self._jobs = jobs
        self._bounds = bounds
        self._waiting: dict[str, int] = {}

    def submit(self, account: Account, task: Task) -> JobInfo:
        """Queue a task, once however often it is sent."""
        require(account, "evaluate")
        order = EvaluationOrder(
            problem=ProblemSource(name="task", source=_named(task.reference_code, task, "")),
            candidates=[_named(task.kernel_code, task, "New")],
            options={"language": task.backend},
        )
        new = evaluation_job(order, self._bounds)
        return self._jobs.submit(account, new, _key(task.task_id))

    async def settled(self, account: Account, task: Task) -> TaskResult:
        """Wait for the result of a task, at most as long as it says, and ten minutes.

        Return its state at once where as many requests of the user wait as may.
        """
        waiting = self._waiting.get(account.user, 0)
        patience_s = min(task.timeout, _MOST_WAIT_S) if waiting < _MOST_WAITING else 0.0
        deadline = time.monotonic() + patience_s
        self._waiting[account.user] = waiting + 1
        try:
            while True:
                found = await run_in_threadpool(self.result, account, task.task_id)
                if found.status not in {"pending", "processing"} or time.monotonic() > deadline:
                    return found
                await asyncio.sleep(_LOOK_S)
        finally:
            self._waiting[account.user] -= 1

    def result(self, account: Account, task_id: str) -> TaskResult:
        """Return the state or the result of a task; raise `HTTPException` (404) for an unknown."""
        job = self._jobs.find_by_key(account.user, _key(task_id))
        if job is None:
            raise HTTPException(404, "no such task")
        if job.state not in ENDED or job.state == "cancelled":
            return TaskResult(task_id=task_id, status=_STATES[job.state])
        if job.state == "failed":
            code = "invalid_reference"
            return TaskResult(
                task_id=task_id, status="failed", error_message=job.error, error_code=code
            )
        [verdict] = self._jobs.result(job.id).verdicts
        return result_of(task_id, evaluation_from_json(verdict))


def result_of(task_id: str, evaluation: Evaluation) -> TaskResult:
    """Return an evaluation as the protocol has it; the speedup is over eager PyTorch.

    A correct kernel that was not measured has the speedup 0, as the protocol's clients take none.
    """
    if isinstance(evaluation, Passed):
        timing = evaluation.measured
        over = timing.speedup_eager if timing else 0.0
        return TaskResult(
            task_id=task_id,
            status="completed",
            compiled=True,
            correctness=True,
            decoy_kernel="decoy" in evaluation.labels,
            reference_runtime=timing.time_us * over / 1000 if timing else None,
            kernel_runtime=timing.time_us / 1000 if timing else None,
            speedup=over,
            metadata={"labels": list(evaluation.labels), **_kernels(evaluation)},
        )
    return TaskResult(
        task_id=task_id,
        status=_NOT_COMPLETED.get(evaluation.status, "completed"),
        compiled=evaluation.status not in {"compile_error", "infra_error"},
        correctness=False,
        decoy_kernel=evaluation.status == "rejected",
        speedup=0.0,
        error_message=evaluation.reason,
        error_code=evaluation.status,
    )


def _kernels(passed: Passed) -> Mapping[str, Any]:
    """Return what a profile tells of a call's kernels, and their times in microseconds."""
    profile = passed.profile
    if profile is None:
        return {}
    own = [kernel for kernel in profile.kernels if kernel.origin == "custom"]
    return {
        "num_custom_kernels": round(sum(kernel.launches for kernel in own)),
        "num_total_kernels": round(sum(kernel.launches for kernel in profile.kernels)),
        "custom_kernel_cuda_time_in_profiling_us": sum(kernel.time_us for kernel in own),
        "total_kernel_run_time_in_profiling_us": profile.device_us,
    }


def _named(source: str, task: Task, suffix: str) -> str:
    """Return a module whose class has the name that problems and candidates have."""
    if task.entry_point == "Model":
        return source
    return f"{source}\n\nModel{suffix} = {task.entry_point}{suffix}\n"


def _key(task_id: str) -> str:
    return f"kernelgym:{hashlib.sha256(task_id.encode()).hexdigest()[:48]}"
