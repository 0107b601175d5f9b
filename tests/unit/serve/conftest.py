import sys
import time
from typing import NamedTuple

import pytest
from services import running

from adaexplore.cli import main
from adaexplore.serve.http.guard import TimedProtocol


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def new_store(request):
    """Make a function that returns a new place for the tables: empty for a file, or a URL."""
    if request.param == "sqlite":
        return lambda: ""
    server = request.getfixturevalue("postgresql")
    return lambda: server.new_database(f"serve{time.monotonic_ns()}")


@pytest.fixture(scope="module")
def service(tmp_path_factory, new_store):
    """A service that accepts jobs and begins none."""
    folder = tmp_path_factory.mktemp("serve")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TimedProtocol, "headers_s", 0.5)
        with running(folder, most_bytes=200_000, store=new_store()) as service:
            yield service


@pytest.fixture
def fresh_user(service):
    """The token of a user without jobs."""
    return service.new_token(f"user{time.monotonic_ns()}")


class Done(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def jobs_command(service, fresh_user, monkeypatch, capsys, tmp_path):
    """Run `adaexplore jobs` as a user of the service."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADAEXPLORE_TOKEN", fresh_user)

    def run(*words: str, server: str = service.url) -> Done:
        named = ["--server", server] if server else []
        monkeypatch.setattr(sys, "argv", ["adaexplore", "jobs", *words, *named])
        with pytest.raises(SystemExit) as end:
            main()
        return Done(end.value.code or 0, *capsys.readouterr())

    return run
