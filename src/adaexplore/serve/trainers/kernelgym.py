"""KernelGYM's protocol (hkust-nlp/KernelGYM) below `/kernelgym`: its clients need a URL alone.

The protocol has no token, so clients give theirs in the URL, `http://x:ada_...@host/kernelgym`. The
judge is this package's: numbers of trials, and what a client would switch off, are not read.

FastAPI reads the annotations of routes, which name local types: they are no texts here.
"""

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed
from adaexplore.search.named_rewards import is_decoy
from adaexplore.serve.accounts import Account
from adaexplore.serve.http.access import AccessGate
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import ProblemSource, Source
from adaexplore.serve.trainers.judging import Attempt, Judging, Outcome

_MOST_TASKS = 100
_MOST_WAIT_S = 600.0
_UNTIMED = -1.0
"""The protocol's runtime where nothing was timed; the speedup is 0 then."""

TaskState = Literal["pending", "processing", "completed", "failed", "timeout", "cancelled"]
TaskId = Annotated[str, Field(min_length=1, max_length=100)]
_CODES: Mapping[str, str] = {
    "compile_error": "COMPILATION_ERROR",
    "runtime_error": "RUNTIME_ERROR",
    "wrong_output": "CORRECTNESS_ERROR",
    "timeout": "TIMEOUT_ERROR",
    "out_of_memory": "RESOURCE_ERROR",
    "rejected": "VALIDATION_ERROR",
}


class Task(BaseModel):
    """A kernel to judge: `entry_point` names the reference's class, with "New" the kernel's.

    `backend` is the kernel's language. A request waits `timeout` seconds for the result.
    """

    task_id: TaskId
    reference_code: Source
    kernel_code: Source
    backend: str = "triton"
    entry_point: Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,63}$")] = "Model"
    timeout: Annotated[float, Field(ge=0)] = 300


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
    app: FastAPI, judging: Judging, jobs: Jobs, gate: AccessGate, is_alive: Callable[[], bool]
) -> None:
    """Add the routes to an application, which runs jobs while it `is_alive`."""
    caller = Annotated[Account, Depends(gate.account)]
    began = time.time()

    async def judged(account: Account, task: Task) -> TaskResult:
        outcome = await judging.wait(account, task.task_id, min(task.timeout, _MOST_WAIT_S))
        return _result(task.task_id, outcome)

    @app.post("/kernelgym/evaluate")
    async def evaluate(request: Request, task: Task, account: caller) -> TaskResult:
        """Judge a kernel; returns its result, or its state after `timeout` seconds."""
        job = await run_in_threadpool(judging.submit, account, task.task_id, _attempt(task))
        request.state.job = job.id
        return await judged(account, task)

    @app.post("/kernelgym/evaluate/batch")
    async def evaluate_batch(batch: TaskBatch, account: caller) -> BatchResult:
        """Judge several kernels; all are submitted before one is waited for."""
        for task in batch.tasks:
            await run_in_threadpool(judging.submit, account, task.task_id, _attempt(task))
        results = [await judged(account, task) for task in batch.tasks]
        completed = sum(result.status == "completed" for result in results)
        under_way = any(result.status in ("pending", "processing") for result in results)
        return BatchResult(
            batch_id=batch.batch_id,
            total_tasks=len(results),
            completed_tasks=completed,
            failed_tasks=len(results) - completed if not under_way else 0,
            results=results,
            batch_status="processing" if under_way else "completed",
        )

    @app.get("/kernelgym/status/{task_id}")
    def status(task_id: str, account: caller) -> TaskResult:
        """Return the state of a task; a failed machine tries again."""
        outcome = judging.outcome(account, task_id)
        if outcome is None:
            raise HTTPException(404, "no such task")
        return _result(task_id, outcome)

    @app.get("/kernelgym/results/{task_id}")
    def results(task_id: str, account: caller) -> TaskResult:
        """Return the result of a task; 404 while it has none, as KernelGYM's server does."""
        found = status(task_id, account)
        if found.status in ("pending", "processing"):
            raise HTTPException(404, f"the task is {found.status}; it has no result yet")
        return found

    @app.delete("/kernelgym/tasks/{task_id}")
    def cancel(task_id: str, account: caller) -> Mapping[str, str]:
        """End a task."""
        if not judging.cancel(account, task_id):
            raise HTTPException(404, "no such task")
        return {"message": f"task {task_id[:100]} is cancelled"}

    @app.get("/kernelgym/health")
    def health() -> Mapping[str, Any]:
        """Return that tasks are judged; 503 where they are not."""
        if not is_alive():
            raise HTTPException(503, "the runner of jobs has ended; restart the service")
        states: dict[str, int] = {}
        for (_, state), count in jobs.counts().items():
            states[state] = states.get(state, 0) + count
        return {
            "status": "healthy",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "gpu_status": {},
            "queue_status": {"pending": states.get("queued", 0)},
            "memory_usage": {},
            "active_tasks": states.get("running", 0),
            "total_processed": states.get("done", 0),
            "uptime": time.time() - began,
        }


def result_of(task_id: str, evaluation: Evaluation) -> TaskResult:
    """Return a verdict as the protocol has it; the speedup is over eager."""
    if isinstance(evaluation, Failed):
        return TaskResult(
            task_id=task_id,
            status="timeout" if evaluation.status == "timeout" else "completed",
            compiled=evaluation.status != "compile_error",
            correctness=False,
            decoy_kernel=is_decoy(evaluation),
            reference_runtime=_UNTIMED,
            kernel_runtime=_UNTIMED,
            speedup=0.0,
            error_message=evaluation.reason,
            error_code=_CODES.get(evaluation.status, "UNKNOWN_ERROR"),
        )
    timing = evaluation.measured
    speedup = timing.speedup_eager if timing else 0.0
    return TaskResult(
        task_id=task_id,
        status="completed",
        compiled=True,
        correctness=True,
        decoy_kernel=is_decoy(evaluation),
        reference_runtime=timing.time_us * speedup / 1000 if timing else _UNTIMED,
        kernel_runtime=timing.time_us / 1000 if timing else _UNTIMED,
        speedup=speedup,
        metadata={
            "measured": timing is not None,
            "labels": list(evaluation.labels),
            **_kernels(evaluation),
        },
    )


def _result(task_id: str, outcome: Outcome) -> TaskResult:
    if outcome.verdict:
        return result_of(task_id, outcome.verdict)
    if outcome.error:
        code = "VALIDATION_ERROR"
        return TaskResult(
            task_id=task_id, status="failed", error_message=outcome.error, error_code=code
        )
    states: Mapping[str, TaskState] = {"queued": "pending", "cancelled": "cancelled"}
    return TaskResult(task_id=task_id, status=states.get(outcome.state, "processing"))


def _kernels(passed: Passed) -> Mapping[str, Any]:
    """Return what a profile tells of a call's kernels, and their times in microseconds."""
    profile = passed.profile
    if profile is None:
        return {}
    own = [kernel for kernel in profile.kernels if kernel.origin == "custom"]
    return {
        "num_custom_kernels": round(sum(kernel.launches for kernel in own)),
        "num_total_kernels": round(sum(kernel.launches for kernel in profile.kernels)),
        "custom_kernel_cuda_time_in_profiling_us": profile.device_us * profile.custom_share,
        "total_kernel_run_time_in_profiling_us": profile.device_us,
    }


def _attempt(task: Task) -> Attempt:
    """Return a task as the judge takes it, with the class names that it looks for."""
    reference, kernel = task.reference_code, task.kernel_code
    if task.entry_point != "Model":
        reference += f"\n\nModel = {task.entry_point}\n"
        kernel += f"\n\nModelNew = {task.entry_point}New\n"
    return Attempt(ProblemSource(name="task", source=reference), kernel, {"language": task.backend})
