"""Starting the service: its folder, its walls, and uvicorn with its limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import uvicorn
from sqlalchemy import Engine

from adaexplore.core.errors import BadInputError
from adaexplore.sandbox.walls.isolation import hide, missing_for_strangers
from adaexplore.serve.app import ServiceSettings, make_app
from adaexplore.serve.http.guard import TimedProtocol
from adaexplore.serve.http.listening import Listening, open_socket
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.tables import make_folder, open_folder
from adaexplore.store.directory import hold_lock
from adaexplore.store.verdicts import open_verdicts

_MOST_CONNECTIONS = 1000
_END_S = 5
_MOST_MESSAGE = 2 << 20


def run_service(
    settings: ServiceSettings,
    listening: Listening,
    *,
    trust_users: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serve until SIGINT or SIGTERM; jobs under way go on when the service starts again.

    `say` gets the address once the service listens there. Raises `BadInputError` where the service
    would be open to the network without TLS or a proxy, where it cannot listen, where another
    service uses the folder, where its evaluation cache cannot be opened, and, unless `trust_users`,
    where problems by strangers could not be confined or could read the folder.
    """
    listening.check()
    missing = [] if trust_users else missing_for_strangers()
    if missing:
        raise BadInputError(
            f"problems by strangers cannot be confined here: {'; '.join(missing)}. Use another "
            "machine, or --trust-users if you would run the code of all users as yourself"
        )
    if not trust_users:
        _refuse_readable(settings.folder)
    hide()
    with ExitStack() as stack:
        make_folder(settings.folder)
        stack.enter_context(hold_lock(settings.folder))
        engine = open_folder(settings.folder, settings.store, serving=True)
        stack.callback(engine.dispose)
        if settings.evaluation_cache:
            open_verdicts(settings.evaluation_cache).close()  # else each job would fail
        if settings.keep_s:
            Jobs(engine, settings.folder / "jobs").forget(settings.keep_s)
        socket = stack.enter_context(closing(open_socket(listening.host, listening.port)))
        say(f"serving {settings.folder} at {listening.url(socket.getsockname()[1])}")
        uvicorn_server(settings, listening, engine).run([socket])


def _refuse_readable(folder: Path) -> None:
    """Refuse a folder below one that Python imports from, which every process may read."""
    search = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *sys.path[1:]]
    for place in map(Path, filter(None, search)):
        if folder.resolve().is_relative_to(place.resolve()):
            raise BadInputError(
                f"{folder} lies in {place}, which Python imports from, so candidates may read it; "
                "name another --folder, or take it out of PYTHONPATH"
            )


def uvicorn_server(
    settings: ServiceSettings, listening: Listening, engine: Engine
) -> uvicorn.Server:
    """Return uvicorn with the service and its limits."""
    config = uvicorn.Config(
        make_app(settings, engine),
        host=listening.host,
        port=listening.port,
        http=TimedProtocol,
        ws="websockets-sansio",
        ws_max_size=_MOST_MESSAGE,
        log_level="warning",
        access_log=False,  # the audit log has each request
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=_END_S,
        proxy_headers=bool(listening.proxies),
        forwarded_allow_ips=listening.proxies,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    return uvicorn.Server(config)
