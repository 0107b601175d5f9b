"""Fixtures and hooks that tests/ and lab/tests/ share as one plugin.

Session-wide processes are here: starting one costs seconds, using it milliseconds.
"""

import os
import socket
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.run import processes
from adaexplore.run.outcome import winner
from adaexplore.sandbox.lock import LOCKS
from adaexplore.sandbox.process import ForkServer
from llm_server import LlmServer
from postgres_server import PostgresServer, binaries
from ray_cluster import RayCluster, disconnect

# The time of an example depends on the load of the machine: no deadline.
settings.register_profile("anywhere", deadline=None)
settings.load_profile("anywhere")

SECRET = "sk-not-for-candidates"
_ENTRIES = Path(__file__).parent / "unit" / "sandbox"
_PRELOAD = (
    "torch",
    "adaexplore.evaluate.judge.judge",
    "adaexplore.evaluate.candidate.worker",
    "adaexplore.evaluate.kernels.build.warm_triton:warm_for_gpu",
    "adaexplore.evaluate.kernels.build.warm_triton:warm_for_targets",
    "adaexplore.languages.cuda.toolkit:use_toolkit",
    "adaexplore.evaluate.offline.judge",
    "adaexplore.evaluate.offline.worker",
    "worker_entries:compile_nothing",
    "worker_entries:time_briefly",
    "worker_entries:remember_peaks",
    "worker_entries:rest_briefly",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` on a machine without a GPU."""
    needing = [item for item in items if item.get_closest_marker("gpu")]
    if needing:
        import torch

        if not torch.cuda.is_available():
            for item in needing:
                item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.fixture(scope="session")
def server():
    """A fork server, started while a provider's key was in the environment.

    Its workers can import `worker_entries`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", SECRET)
        patch.setenv("PYTHONPATH", str(_ENTRIES), prepend=os.pathsep)
        server = ForkServer.start(_PRELOAD)
    yield server
    server.close()


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_others(tmp_path_factory):
    """Measure a winner again without a pause, and beside the tests of other workers.

    Not on a GPU: kernels of other tests would be taken for kernels of a candidate at rest.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "PYTEST_XDIST_WORKER" in os.environ and not torch.cuda.is_available():
            patch.setenv(LOCKS, str(tmp_path_factory.mktemp("locks")))
        patch.setattr(winner, "_PAUSES_S", (0.0,))
        yield


@pytest.fixture(scope="session")
def eventually():
    """Wait until a condition holds; return False after 30 seconds."""

    def eventually(condition) -> bool:
        deadline = time.monotonic() + 30.0
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    return eventually


@pytest.fixture(scope="session")
def is_running():
    """Return True for a process that exists and is not a zombie."""

    def is_running(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    return is_running


@pytest.fixture(scope="session")
def loopback():
    """A language model behind real HTTP; `reset` it before use."""
    with LlmServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server with a database for runs."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    server = PostgresServer(programs)
    yield server
    server.close()


@pytest.fixture(scope="session")
def ray_cluster():
    """A Ray cluster without devices, which this process may join; tests add nodes."""
    if find_spec("ray") is None:  # an import would fix the token before there is one
        pytest.skip("Ray is not installed (pip install 'adaexplore[ray]')")
    with pytest.MonkeyPatch.context() as patch:
        cluster = RayCluster()
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        yield cluster
        disconnect()
        cluster.close()


@pytest.fixture
def free_port():
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    program: str
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The single line on stderr that reports bad input."""
        assert self.code == 2, self
        assert self.out == "", self
        [line] = self.err.splitlines()
        assert line.startswith(f"{self.program}: ")
        return line


class BorrowedServer:
    """The shared fork server without the power to end it."""

    def __init__(self, server: ForkServer) -> None:
        self.spawn = server.spawn

    def close(self) -> None:
        pass


@pytest.fixture
def command_line(monkeypatch, capsys, server):
    """Make a function that runs a program's command line in this process.

    Every fork server that the program starts is the shared one, and its evaluators are brief.
    """
    monkeypatch.setattr(
        ForkServer, "start", staticmethod(lambda preload=(): BorrowedServer(server))
    )
    monkeypatch.setattr(processes, "LocalEvaluator", partial(LocalEvaluator, brief=True))

    def command_line(program: str, main: Callable[[], None]):
        def run(*words) -> CommandResult:
            monkeypatch.setattr(sys, "argv", [program, *map(str, words)])
            with pytest.raises(SystemExit) as caught:
                main()
            out, err = capsys.readouterr()
            return CommandResult(program, caught.value.code or 0, out, err)

        return run

    return command_line


@pytest.fixture
def file(tmp_path):
    """Make a function that writes a file below `tmp_path` and returns its path."""

    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return file
