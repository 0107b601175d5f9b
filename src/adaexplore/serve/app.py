"""The routes of the service. What they do is in `jobs`, `access` and `runner`.

FastAPI reads the annotations of routes, which name local types: they are no texts here.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.core.version import __version__
from adaexplore.serve.accounts import Account
from adaexplore.serve.http.access import AccessGate, require
from adaexplore.serve.http.audit import log_request, open_audit
from adaexplore.serve.http.guard import BoundedBody
from adaexplore.serve.http.metrics import Metrics
from adaexplore.serve.jobs import Jobs, NewJob
from adaexplore.serve.messages import (
    ENDED,
    MOST_NUMBER,
    CampaignOrder,
    EvaluationOrder,
    Health,
    JobInfo,
    JobPrompt,
    JobResult,
    PromptReply,
    SearchOrder,
)
from adaexplore.serve.options import Bounds
from adaexplore.serve.orders import campaign_job, continue_job, evaluation_job, search_job
from adaexplore.serve.page.team import TeamPages
from adaexplore.serve.quotas import QuotaError
from adaexplore.serve.runner import Runner
from adaexplore.serve.streams import EventStreams
from adaexplore.serve.tables import why_unreachable
from adaexplore.serve.trainers.episodes import Episodes
from adaexplore.serve.trainers.judging import Judging
from adaexplore.serve.trainers.kernelgym import add_kernelgym
from adaexplore.serve.trainers.openenv import add_openenv
from adaexplore.serve.trainers.splits import Split, builtin_splits
from adaexplore.serve.warm import WarmLimits

_MOST_FAULTS = 3
"""Faults of a message that its refusal names."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of a service: `folder` holds all of its files.

    `at_once` jobs run at the same time; with 0 they wait. `store` is the PostgreSQL database of
    runs, empty for files, and `ray` the cluster that judges, empty for this machine, whose `device`
    is "cpu" or "cuda". A body may have `most_bytes`, and takes at most `body_s` seconds. A start
    deletes jobs that ended `keep_s` seconds before, 0 for none. Episodes of trainers are on the
    problems of `splits`, in `language` unless they say another. `evaluation_cache` is the place of
    a cache of verdicts, empty for none; with `share_verdicts` the users have it in common, and the
    prepared references that `warm` limits.
    """

    folder: Path
    at_once: int = 1
    store: str = ""
    ray: str = ""
    bounds: Bounds = field(default_factory=Bounds)
    most_bytes: int = 32 << 20
    body_s: float = 30.0
    keep_s: float = 0.0
    splits: Sequence[Split] = field(default_factory=builtin_splits)
    language: str = "triton"
    device: str = ""
    evaluation_cache: str = ""
    share_verdicts: bool = False
    warm: WarmLimits = field(default_factory=WarmLimits)

    def fixed(self, user: str) -> dict[str, str]:
        """Return the fields of `Config` that the service sets for the jobs of a user.

        Verdicts stay among the jobs of a user unless all share them. A problem could tell whose job
        it is, and a verdict that comes at once tells that somebody has judged the same source.
        """
        scope = "" if self.share_verdicts else user
        return {
            "store": self.store,
            "ray": self.ray,
            "evaluation_cache": self.evaluation_cache,
            "evaluation_scope": f"serve:{scope}",
        }


def make_app(settings: ServiceSettings, engine: Engine) -> FastAPI:
    """Return the service as an ASGI application on an open database."""
    jobs = Jobs(engine, settings.folder / "jobs")
    service = _Service(settings, jobs, AccessGate(engine))
    runner = Runner(jobs, settings.at_once, settings.warm)
    metrics, audit = Metrics(jobs), open_audit(settings.folder / "audit.jsonl")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        runner.start()
        yield
        await run_in_threadpool(runner.close)

    app = FastAPI(
        title="AdaExplore",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # the page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )

    @app.middleware("http")
    async def record(
        request: Request, answer: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        began = time.perf_counter()
        response = await answer(request)
        route = getattr(request.scope.get("route"), "path", "none")
        metrics.count(route, response.status_code, time.perf_counter() - began)
        log_request(audit, request, response)
        return response

    @app.exception_handler(BadInputError)
    async def refuse(_: Request, error: BadInputError) -> Response:
        return _refusal(str(error))

    @app.exception_handler(RequestValidationError)
    async def refuse_form(_: Request, error: RequestValidationError) -> Response:
        found = error.errors()[:_MOST_FAULTS]
        faults = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in found]
        return _refusal("; ".join(faults))

    @app.exception_handler(QuotaError)
    async def wait(_: Request, error: QuotaError) -> Response:
        return JSONResponse({"detail": str(error)}, 429, {"Retry-After": "60"})

    @app.exception_handler(InfrastructureError)
    async def wait_for_machine(_: Request, error: InfrastructureError) -> Response:
        return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "60"})

    @app.exception_handler(DBAPIError)
    async def wait_for_database(_: Request, error: DBAPIError) -> Response:
        return JSONResponse({"detail": why_unreachable(error)}, 503, {"Retry-After": "5"})

    @app.get("/health")
    def health() -> Health:
        """Return the state of the service; 503 where it runs no jobs."""
        if not runner.is_alive:
            raise HTTPException(503, "the runner of jobs has ended; restart the service")
        counts: dict[str, int] = {}
        for (_, state), count in jobs.counts().items():
            counts[state] = counts.get(state, 0) + count
        return Health(
            version=__version__,
            queued=counts.get("queued", 0),
            running=counts.get("running", 0),
            device=settings.device,
        )

    @app.get("/metrics")
    def show_metrics(account: Annotated[Account, Depends(service.gate.account)]) -> Response:
        """Return the metrics for Prometheus."""
        require(account, "metrics")
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    service.add_routes(app)
    judging = Judging(jobs, settings.bounds, settings.fixed)
    add_kernelgym(app, judging, jobs, service.gate, lambda: runner.is_alive)
    splits = {split.name: split for split in settings.splits}
    episodes = Episodes(judging, splits, settings.bounds, settings.language)
    add_openenv(app, episodes, splits, service.gate, audit)
    app.router.routes.extend(TeamPages(jobs, service.gate).routes())
    app.add_middleware(BoundedBody, most_bytes=settings.most_bytes, most_s=settings.body_s)
    return app


class _Service:
    """The routes below `/v1`."""

    def __init__(self, settings: ServiceSettings, jobs: Jobs, gate: AccessGate) -> None:
        self.gate = gate
        self._settings = settings
        self._jobs = jobs
        self._streams = EventStreams(jobs, gate)

    def add_routes(self, app: FastAPI) -> None:
        """Add the routes to an application."""
        caller = Annotated[Account, Depends(self.gate.account)]
        once = Annotated[str | None, Header(alias="Idempotency-Key", max_length=64)]
        settings = self._settings

        def submit(request: Request, account: Account, new: NewJob, key: str | None) -> JobInfo:
            require(account, new.scope)
            if new.asks_models:
                require(account, "models")
            job = self._jobs.submit(account, new, key)
            request.state.job = job.id
            return job

        @app.post("/v1/evaluations", status_code=202)
        def evaluate(
            request: Request, order: EvaluationOrder, account: caller, key: once = None
        ) -> JobInfo:
            """Judge candidates against one problem."""
            new = evaluation_job(order, settings.bounds, settings.fixed(account.user))
            return submit(request, account, new, key)

        @app.post("/v1/searches", status_code=202)
        def search(
            request: Request, order: SearchOrder, account: caller, key: once = None
        ) -> JobInfo:
            """Search for a faster kernel."""
            new = search_job(order, settings.bounds, settings.fixed(account.user))
            return submit(request, account, new, key)

        @app.post("/v1/campaigns", status_code=202)
        def campaign(
            request: Request, order: CampaignOrder, account: caller, key: once = None
        ) -> JobInfo:
            """Search several problems within one budget."""
            new = campaign_job(order, settings.bounds, settings.fixed(account.user))
            return submit(request, account, new, key)

        @app.get("/v1/jobs")
        def list_jobs(
            account: caller, limit: Annotated[int, Query(ge=1, le=1000)] = 100
        ) -> list[JobInfo]:
            """Return the caller's jobs, the latest first."""
            return self._jobs.of_user(account.user, limit)

        @app.get("/v1/jobs/{job_id}")
        def show(request: Request, job_id: str, account: caller) -> JobInfo:
            """Return a job of the caller."""
            return self._job(request, account, job_id)

        @app.get("/v1/jobs/{job_id}/result")
        def result(request: Request, job_id: str, account: caller) -> JobResult:
            """Return the result of a job that has ended; 409 before."""
            self._ended(request, account, job_id)
            return self._jobs.result(job_id)

        @app.post("/v1/jobs/{job_id}/cancel")
        def cancel(request: Request, job_id: str, account: caller) -> JobInfo:
            """End a job; what it has recorded stays."""
            self._job(request, account, job_id)
            self._jobs.cancel(job_id)
            return self._job(request, account, job_id)

        @app.post("/v1/jobs/{job_id}/continue")
        def go_on(request: Request, job_id: str, account: caller) -> JobInfo:
            """Continue a search or a campaign that was cancelled or failed."""
            job = self._job(request, account, job_id)
            return continue_job(self._jobs, account, job)

        @app.get("/v1/jobs/{job_id}/prompts")
        def prompts(request: Request, job_id: str, account: caller) -> list[JobPrompt]:
            """Return the prompts of a search that wait for an answer by the caller."""
            return self._jobs.prompts.waiting(self._job(request, account, job_id).id)

        @app.get("/v1/jobs/{job_id}/replies")
        def replies(request: Request, job_id: str, account: caller) -> list[PromptReply]:
            """Return the answers that the prompts of a search have."""
            return self._jobs.prompts.given(self._job(request, account, job_id).id)

        @app.post("/v1/jobs/{job_id}/replies", status_code=202)
        def reply(request: Request, job_id: str, given: PromptReply, account: caller) -> JobInfo:
            """Answer a prompt; the job goes on with the answer. The first one counts."""
            require(account, "search")
            self._jobs.prompts.answer(self._job(request, account, job_id).id, given)
            return self._job(request, account, job_id)

        @app.get("/v1/jobs/{job_id}/files/{name:path}", response_class=FileResponse)
        def file(request: Request, job_id: str, name: str, account: caller) -> FileResponse:
            """Return a file of a job that has ended; `files` of the job lists them."""
            job = self._ended(request, account, job_id)
            if name not in job.files:
                raise HTTPException(404, "no such file")
            return _download(self._jobs.folder / job_id / "run", name)

        @app.get("/v1/jobs/{job_id}/events", response_class=EventSourceResponse)
        async def events(
            request: Request,
            job_id: str,
            account: caller,
            after: Annotated[
                int | None, Header(alias="Last-Event-ID", ge=0, le=MOST_NUMBER)
            ] = None,
        ) -> EventSourceResponse:
            """Stream the events of a job until it has ended, as server-sent events."""
            await run_in_threadpool(self._job, request, account, job_id)
            return self._streams.open(request, account.user, job_id, after or 0)

    def _job(self, request: Request, account: Account, job_id: str) -> JobInfo:
        """Return a job of the caller; another user's is as unknown as one that is not there."""
        job = self._jobs.find(account.user, job_id)
        if job is None:
            raise HTTPException(404, "no such job")
        request.state.job = job.id
        return job

    def _ended(self, request: Request, account: Account, job_id: str) -> JobInfo:
        job = self._job(request, account, job_id)
        if job.state not in ENDED:
            raise HTTPException(409, f"the job is {job.state}; it has a result once it has ended")
        return job


def _refusal(line: str) -> Response:
    """Return the answer to bad input; its line may repeat characters that UTF-8 does not have."""
    return Response(json.dumps({"detail": line}), 422, media_type="application/json")


def _download(folder: Path, name: str) -> FileResponse:
    """Return a file as one to save: pages with a candidate's text must not run here."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        raise HTTPException(404, "no such file")
    return FileResponse(
        file, media_type="application/octet-stream", filename=name.replace("/", "-")
    )
