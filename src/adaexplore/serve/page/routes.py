"""The routes of the pages, for any application: what may be seen is its shelf's matter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from adaexplore.core.errors import BadInputError
from adaexplore.serve.page.guard import HEADERS, FormGuard
from adaexplore.serve.page.library import Library
from adaexplore.serve.page.shelf import Entry
from adaexplore.serve.page.views import Reader, Views, bundle
from adaexplore.serve.streams import until_lost

_LOOK_S = 0.4
"""Time between two looks at the records, in seconds; longer where a look takes long."""
_MOST_STREAMS = 64
_ADMIT_S = 10.0
"""Time after which a stream asks again if its reader may read, in seconds."""
_TITLES = {400: "Not understood", 403: "Not from here", 404: "Not here", 429: "Too much at once"}

Answer = Callable[[Request], Awaitable[Response]]
Admit = Callable[[Request], Awaitable[Reader]]
"""Returns the reader of a request; raises `HTTPException` for who may not read."""


class Pages:
    """The routes of the pages. `admit` says who reads, `guard` protects the forms."""

    def __init__(
        self, admit: Admit, guard: FormGuard, *, most_streams: int = _MOST_STREAMS
    ) -> None:
        self._admit = admit
        self._guard = guard
        self._most_streams = most_streams
        self._views = Views(Library())
        self._streams: dict[str, int] = {}

    @property
    def views(self) -> Views:
        """The pages as HTML."""
        return self._views

    def routes(self) -> list[Route]:
        """Return all routes."""
        shown = {
            "/": self._overview,
            "/events": self._events,
            "/compare": self._kernels,
            "/searches": self._searches,
            "/assets/{name}": self._asset,
            "/runs/{key}": self._entry,
            "/runs/{key}/events": self._events,
        }
        act = Route("/runs/{key}/{action}", self.safely(self._act), methods=["POST"])
        return [*(Route(path, self.safely(answer)) for path, answer in shown.items()), act]

    def safely(self, answer: Answer) -> Answer:
        """Return a route that answers refusals with a page."""

        async def answering(request: Request) -> Response:
            try:
                return await answer(request)
            except HTTPException as error:
                if error.status_code == 303 and error.headers:
                    return RedirectResponse(error.headers["Location"], 303, HEADERS)
                title = _TITLES.get(error.status_code, "Refused")
                return self.refusal(None, title, error.detail, error.status_code)

        return answering

    async def _overview(self, request: Request) -> Response:
        reader = await self._admit(request)
        return await self._html(reader, self._views.overview, reader)

    async def _entry(self, request: Request) -> Response:
        reader, entry = await self._found(request)
        return await self._html(reader, self._views.entry, reader, entry)

    async def _kernels(self, request: Request) -> Response:
        reader = await self._admit(request)
        return await self._html(reader, self._views.kernels, reader, dict(request.query_params))

    async def _searches(self, request: Request) -> Response:
        reader = await self._admit(request)
        keys = request.query_params.getlist("key")
        return await self._html(reader, self._views.searches, reader, keys)

    async def _asset(self, request: Request) -> Response:
        found = bundle(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        cached = {"Cache-Control": "max-age=31536000, immutable"}
        return Response(found[0], headers=HEADERS | cached, media_type=found[1])

    async def _found(self, request: Request) -> tuple[Reader, Entry]:
        reader = await self._admit(request)
        key = request.path_params["key"]
        for entry in await run_in_threadpool(reader.shelf.entries):
            if entry.key == key:
                return reader, entry
        raise HTTPException(404, "there is no such search")

    async def _html(self, reader: Reader, view: Callable[..., str], *given: Any) -> Response:
        try:
            return page_response(await run_in_threadpool(view, *given))
        except BadInputError as error:
            return self.refusal(reader, "This cannot be shown", str(error), 422)

    def refusal(self, reader: Reader | None, title: str, detail: str, status: int) -> Response:
        """Return a page that says why there is no other."""
        return page_response(self._views.notice(reader, title, detail), status)

    async def _events(self, request: Request) -> Response:
        """Stream a `changed` event whenever the page of the request's address has news."""
        reader, entry = await self._admit(request), None
        if "key" in request.path_params:
            reader, entry = await self._found(request)
        if self._streams.get(reader.user, 0) >= self._most_streams:
            raise HTTPException(429, f"{self._most_streams} pages are open, the most")
        known = request.query_params.get("version", "")
        stream = until_lost(self._changes(reader, entry, request, known))
        return EventSourceResponse(stream, headers=HEADERS, send_timeout=30.0)

    async def _changes(
        self, reader: Reader, entry: Entry | None, request: Request, known: str
    ) -> AsyncGenerator[dict[str, str], None]:
        user = reader.user
        if self._streams.get(user, 0) >= self._most_streams:  # some may have come at once
            return
        self._streams[user] = self._streams.get(user, 0) + 1
        admitted = time.monotonic()
        try:
            while True:
                began = time.monotonic()
                if began - admitted > _ADMIT_S:  # a token that was revoked sees no more
                    try:
                        await self._admit(request)
                    except HTTPException:
                        return
                    admitted = began
                now = await run_in_threadpool(self._views.version, reader.shelf, entry)
                if now != known:
                    known = now
                    yield {"event": "changed", "data": now}
                await asyncio.sleep(max(_LOOK_S, 3 * (time.monotonic() - began)))
        finally:
            self._streams[user] -= 1

    async def _act(self, request: Request) -> Response:
        reader, entry = await self._found(request)
        fields = await self._guard.form(request, getattr(request.state, "session", ""))
        action = request.path_params["action"]
        if action == "ask" and not reader.shelf.may_ask:
            raise HTTPException(404, "prompts come by themselves here")
        try:
            await run_in_threadpool(self._carry_out, action, reader, entry, fields)
        except BadInputError as error:
            return self.refusal(reader, "Not done", str(error), 409)
        return RedirectResponse(f"/runs/{entry.key}", 303, HEADERS)

    def _carry_out(self, action: str, reader: Reader, entry: Entry, fields: dict[str, str]) -> None:
        match action:
            case "stop":
                reader.shelf.stop(entry)
            case "continue":
                reader.shelf.go_on(entry)
            case "ask":
                reader.shelf.ask(entry)
            case "tell":
                _tell(reader, entry, fields)
                if fields.get("then") == "evaluate" and not reader.shelf.state(entry):
                    reader.shelf.go_on(entry)
            case _:
                raise HTTPException(404)


def page_response(html: str, status: int = 200) -> Response:
    """Return a page with the headers of all pages."""
    return HTMLResponse(html, status, HEADERS)


def _tell(reader: Reader, entry: Entry, fields: dict[str, str]) -> None:
    ask, turn = fields.get("ask", ""), fields.get("turn", "")
    if not (ask.isdecimal() and turn.isdecimal() and len(ask + turn) < 20):
        raise BadInputError("the form names no prompt")
    reply = fields.get("reply", "").replace("\r\n", "\n")
    reader.shelf.tell(entry, int(ask), int(turn), reply)
