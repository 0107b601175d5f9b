"""`adaexplore ui`: the pages for the runs in some folders, on loopback, without a token."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request

from adaexplore.core.errors import BadInputError
from adaexplore.serve.http.guard import BoundedBody, TimedProtocol
from adaexplore.serve.http.listening import open_socket
from adaexplore.serve.page.guard import FormGuard, require_loopback_host
from adaexplore.serve.page.routes import Pages
from adaexplore.serve.page.shelf import FolderShelf
from adaexplore.serve.page.views import Reader

_HOST = "127.0.0.1"
_MOST_BYTES = 16 << 20
_BODY_S = 30.0
_END_S = 1


def make_pages(folders: Sequence[Path]) -> Starlette:
    """Return the pages of the runs in some folders as an ASGI application."""
    guard = FormGuard()
    reader = Reader(FolderShelf(folders), guard.field(""))

    async def admit(request: Request) -> Reader:
        require_loopback_host(request)
        return reader

    return Starlette(
        routes=Pages(admit, guard).routes(),
        middleware=[Middleware(BoundedBody, most_bytes=_MOST_BYTES, most_s=_BODY_S)],
    )


def pages_server(folders: Sequence[Path], port: int) -> uvicorn.Server:
    """Return uvicorn with the pages, on loopback."""
    config = uvicorn.Config(
        make_pages(folders),
        host=_HOST,
        port=port,
        http=TimedProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_END_S,
    )
    return uvicorn.Server(config)


def run_pages(
    folders: Sequence[Path], port: int, *, browser: bool, say: Callable[[str], None]
) -> None:
    """Serve the pages until Ctrl-C; with `browser`, open them.

    Raises `BadInputError` for a folder that does not exist.
    """
    for folder in folders:
        if not folder.is_dir():
            raise BadInputError(f"{folder} is no folder; name a run, or a folder of runs")
    with closing(open_socket(_HOST, port)) as socket:
        address = f"http://{_HOST}:{port}/"
        say(f"{', '.join(map(str, folders))}: {address} (Ctrl-C ends the pages, and no search)")
        if browser:
            webbrowser.open(address)
        pages_server(folders, port).run([socket])
