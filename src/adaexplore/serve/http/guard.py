"""Bounds on what a client may send: sizes, and time for sending it. Pure ASGI and asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 10.0
"""Time that a client has for the headers of a request, in seconds."""

_MOST_BODIES = 8
"""Bodies of the greatest size that may be in memory at once."""

_ANSWER_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)


class BoundedBody:
    """Middleware that reads a body of at most `most_bytes` within `most_s` seconds.

    A larger one gets 413, a slower one 408, and one that comes while others fill the memory 503.
    All answers get headers that keep a browser from running what they contain, unless they have
    their own.
    """

    def __init__(self, app: ASGIApp, *, most_bytes: int, most_s: float) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._most_s = most_s
        self._held = 0  # bytes of all bodies that are being read or answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send, parts = _with_headers(send), list[bytes]()
        try:
            await self._read(scope, receive, parts)
            await self._app(scope, _replay(b"".join(parts), receive), send)
        except _RefusedError as refusal:
            await refusal.answer(scope, receive, send)
        finally:
            self._held -= sum(map(len, parts))

    async def _read(self, scope: Scope, receive: Receive, parts: list[bytes]) -> None:
        """Read the body into `parts`, which count as held from then on; raise `_RefusedError`."""
        too_large = _RefusedError(413, f"the body is over {self._most_bytes} bytes")
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self._most_bytes:
            raise too_large
        size, more = 0, True
        try:
            async with asyncio.timeout(self._most_s):
                while more:
                    message = await receive()
                    part: bytes = message.get("body", b"")
                    size += len(part)
                    if size > self._most_bytes:
                        raise too_large
                    if self._held + len(part) > _MOST_BODIES * self._most_bytes:
                        raise _RefusedError(503, "too many bodies at once; try again")
                    parts.append(part)
                    self._held += len(part)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _RefusedError(408, f"the body took over {self._most_s:g} s") from None


class _RefusedError(Exception):
    """A body that is not taken, with the status of the answer."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.answer = JSONResponse({"detail": detail}, status)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()  # the client's end of the connection
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", [])
            named = {name.lower() for name, _ in given}  # those of the live pages
            missing = [header for header in _ANSWER_HEADERS if header[0] not in named]
            message["headers"] = [*given, *missing]
        await send(message)

    return sending


class TimedProtocol(H11Protocol):
    """Uvicorn's protocol, with a time limit for the headers of each request."""

    headers_s = HEADERS_S
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:  # the headers are complete
            self._stop()
        else:
            self._begin()

    def on_response_complete(self) -> None:
        """See `H11Protocol`; the next request may have begun before this answer was complete."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._stop()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.headers_s, self._end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
