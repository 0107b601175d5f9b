"""The pages of `adaexplore serve`: each user logs in with a token and sees the user's own jobs."""

from __future__ import annotations

import time
from collections.abc import Collection

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from adaexplore.core.errors import BadInputError
from adaexplore.run.asks.ask_files import WaitingPrompt
from adaexplore.serve.accounts import Account
from adaexplore.serve.http.access import AccessGate, require
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import RESUMABLE, SOURCE_CHARACTERS, JobInfo, PromptReply
from adaexplore.serve.orders import continue_job
from adaexplore.serve.page.guard import HEADERS, FormGuard
from adaexplore.serve.page.routes import Pages, page_response
from adaexplore.serve.page.shelf import Entry, Kind, entry_of, find_entries
from adaexplore.serve.page.views import Reader
from adaexplore.serve.quotas import QuotaError

_COOKIE = "ada_session"
_LOOK_S = 1.0
_MOST_JOBS = 200
_MOST_STREAMS = 16
_LOGIN = "/login"


class JobShelf:
    """The searches and campaigns among a user's jobs."""

    may_ask = False
    resumable: Collection[str] = RESUMABLE

    def __init__(self, jobs: Jobs, account: Account) -> None:
        self._jobs = jobs
        self._account = account
        self.private = str(jobs.folder)
        self._at = 0.0
        self._found: list[Entry] = []
        self._job_of: dict[str, JobInfo] = {}

    def entries(self) -> list[Entry]:
        """See `Shelf`."""
        now = time.monotonic()
        if now - self._at > _LOOK_S:
            jobs = self._jobs.of_user(self._account.user, _MOST_JOBS)
            found = {job.id: self._entries_of(job) for job in jobs if job.kind != "evaluation"}
            by_id = {job.id: job for job in jobs}
            self._job_of = {e.key: by_id[i] for i, some in found.items() for e in some}
            self._found = [entry for some in found.values() for entry in some]
            self._at = now
        return self._found

    def _entries_of(self, job: JobInfo) -> list[Entry]:
        folder, name = self._jobs.folder / job.id / "run", f"{job.problem} {job.id[:8]}"
        kind: Kind = "campaign" if job.kind == "campaign" else "run"
        return list(find_entries(folder, name)) or [entry_of(folder, name, kind)]

    def state(self, entry: Entry) -> str:
        """See `Shelf`."""
        return self._job_of[entry.key].state

    def trouble(self, entry: Entry) -> str:
        """See `Shelf`."""
        return self._job_of[entry.key].error

    def stop(self, entry: Entry) -> None:
        """See `Shelf`."""
        self._jobs.cancel(self._job_of[entry.key].id)

    def go_on(self, entry: Entry) -> None:
        """See `Shelf`."""
        try:
            continue_job(self._jobs, self._account, self._job_of[entry.key])
        except QuotaError as error:
            raise BadInputError(str(error)) from None

    def prompts(self, entry: Entry) -> list[WaitingPrompt]:
        """See `Shelf`."""
        waiting = self._jobs.prompts.waiting(self._job_of[entry.key].id)
        return [WaitingPrompt(each.ask, each.turn, each.purpose, each.text) for each in waiting]

    def ask(self, entry: Entry) -> None:
        """Refuse: the worker opens prompts."""
        raise BadInputError(f"{entry.name}: prompts come by themselves here")

    def tell(self, entry: Entry, ask_id: int, turn: int, reply: str) -> None:
        """See `Shelf`."""
        require(self._account, "search")
        try:
            given = PromptReply(ask=ask_id, turn=turn, reply=reply)
        except ValidationError:
            most = f"{SOURCE_CHARACTERS:,}"
            raise BadInputError(f"a reply to a prompt has 1 to {most} characters") from None
        self._jobs.prompts.answer(self._job_of[entry.key].id, given)


class TeamPages:
    """The pages with their login; the cookie has the token, which is checked at each request."""

    def __init__(self, jobs: Jobs, gate: AccessGate) -> None:
        self._jobs = jobs
        self._gate = gate
        self._guard = FormGuard()
        self._pages = Pages(self._admit, self._guard, most_streams=_MOST_STREAMS)

    def routes(self) -> list[Route]:
        """Return all routes."""
        return [
            Route(_LOGIN, self._pages.safely(self._login), methods=["GET", "POST"]),
            Route("/logout", self._pages.safely(self._logout), methods=["POST"]),
            *self._pages.routes(),
        ]

    async def _admit(self, request: Request) -> Reader:
        token = request.cookies.get(_COOKIE, "")
        to_login = HTTPException(303, "log in", {"Location": _LOGIN})
        if not token:
            raise to_login
        try:
            account = await run_in_threadpool(self._gate.of_token, request, token)
        except HTTPException as error:
            raise to_login if error.status_code == 401 else error from None
        request.state.session = token
        return Reader(JobShelf(self._jobs, account), self._guard.field(token), account.user)

    async def _login(self, request: Request) -> Response:
        if request.method == "GET":
            return self._login_page("")
        fields = await self._guard.form(request, "")
        token = fields.get("token", "").strip()
        try:
            await run_in_threadpool(self._gate.of_token, request, token)
        except HTTPException as error:
            wrong = "This is no valid token." if error.status_code == 401 else error.detail
            return self._login_page(wrong, error.status_code)
        response = RedirectResponse("/", 303, HEADERS)
        secure = request.url.scheme == "https"
        response.set_cookie(_COOKIE, token, httponly=True, samesite="strict", secure=secure)
        return response

    def _login_page(self, wrong: str, status: int = 200) -> Response:
        return page_response(self._pages.views.login(self._guard.field(""), wrong), status)

    async def _logout(self, request: Request) -> Response:
        await self._admit(request)
        await self._guard.form(request, request.state.session)
        response = RedirectResponse(_LOGIN, 303, HEADERS)
        response.delete_cookie(_COOKIE, httponly=True, samesite="strict")
        return response
