"""Streams of events: those of a job, and the end of any where the database is lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import HTTPException, Request
from sqlalchemy.exc import DBAPIError
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from adaexplore.serve.http.access import AccessGate
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import ENDED, JobEvent
from adaexplore.serve.tables import is_unreachable

_LOOK_S = 0.25
ADMIT_S = 10.0
"""Time after which a stream of events asks again if its token holds, in seconds."""
_SEND_S = 30.0
"""Time that a reader of events has to take one, in seconds."""
_MOST_STREAMS = 8
"""Streams of events that one user may have open."""
_LOG = logging.getLogger("uvicorn.error")
_Event = TypeVar("_Event")


class EventStreams:
    """The streams of the events of jobs that are open."""

    def __init__(self, jobs: Jobs, gate: AccessGate) -> None:
        self._jobs = jobs
        self._gate = gate
        self._streams: dict[str, int] = {}

    def open(self, request: Request, user: str, job_id: str, after: int) -> EventSourceResponse:
        """Return the events of a user's job with numbers above `after`, up to its end.

        Raises `HTTPException` (429) where the user has too many open.
        """
        if self._streams.get(user, 0) >= _MOST_STREAMS:
            raise HTTPException(429, f"{_MOST_STREAMS} streams of events are open, your most")
        stream = until_lost(self._stream(request, user, job_id, after))
        return EventSourceResponse(stream, send_timeout=_SEND_S)

    async def _stream(
        self, request: Request, user: str, job_id: str, after: int
    ) -> AsyncGenerator[dict[str, Any], None]:
        if self._streams.get(user, 0) >= _MOST_STREAMS:  # some may have come at once
            return
        self._streams[user] = self._streams.get(user, 0) + 1
        admitted = time.monotonic()
        try:
            if await run_in_threadpool(self._has_nothing_more, user, job_id, after):
                return
            while True:
                if time.monotonic() - admitted > ADMIT_S:
                    if not await run_in_threadpool(self._gate.admits, request):
                        return
                    admitted = time.monotonic()
                found = await run_in_threadpool(self._jobs.events, job_id, after)
                for event in found:
                    after = event.number
                    yield _sse(event)
                    if event.type == "state" and event.text in ENDED:
                        return
                if not found:
                    await asyncio.sleep(_LOOK_S)
        finally:
            self._streams[user] -= 1

    def _has_nothing_more(self, user: str, job_id: str, after: int) -> bool:
        """Return True for a client that comes again after the last event of a job."""
        job = self._jobs.find(user, job_id)
        return (job is None or job.state in ENDED) and not self._jobs.events(job_id, after)


async def until_lost(stream: AsyncGenerator[_Event, None]) -> AsyncIterator[_Event]:
    """Yield the events of a stream; end it, with a line in the log, where the database is lost.

    Clients connect again then, and get 503 until the database is back.
    """
    async with aclosing(stream):
        try:
            async for event in stream:
                yield event
        except DBAPIError as error:
            if not is_unreachable(error):
                raise
            _LOG.warning("a stream of events has ended: the database cannot be reached now")


def _sse(event: JobEvent) -> dict[str, Any]:
    return {"id": str(event.number), "event": event.type, "data": event.model_dump_json()}
