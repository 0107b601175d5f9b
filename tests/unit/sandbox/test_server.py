"""Remains of a server and its workers after the process that started it is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OWNER = """
import sys, time
from adaexplore.sandbox.process import ForkServer

server = ForkServer.start(["worker_entries"])
print(server.root, flush=True)
worker = server.spawn("worker_entries:act", name="worker")
try:
    worker.call({"do": "hang_with_family", "pids": sys.argv[1]}, float(sys.argv[2]))
except TimeoutError:
    server.close()
"""


@pytest.fixture
def owner(tmp_path):
    """Start a process that owns a server whose worker hangs with descendants."""
    started = []

    def start(timeout_s: float):
        search = [str(Path(__file__).parent), *sys.path]
        process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(tmp_path / "pids"), str(timeout_s)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search))},
        )
        started.append(process)
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def processes_of(root: Path) -> list[str]:
    """Running processes that name the server's folder in their arguments or environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            about = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if str(root).encode() in about:
            found.append(about.decode(errors="replace"))
    return found


def test_nothing_remains_after_the_owner_is_killed(owner, tmp_path, eventually, is_running):
    process, root = owner(timeout_s=600.0)
    pids = tmp_path / "pids"
    assert eventually(lambda: pids.exists() and len(pids.read_text().split()) == 3)
    family = [int(pid) for pid in pids.read_text().split()]
    assert root.is_dir()
    assert all(map(is_running, family))
    process.send_signal(signal.SIGKILL)
    assert eventually(lambda: not any(map(is_running, family)))
    assert eventually(lambda: not root.exists())
    assert eventually(lambda: not processes_of(root))


def test_nothing_remains_after_closing(owner, tmp_path, is_running):
    process, root = owner(timeout_s=2.0)
    assert process.wait(60) == 0
    family = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert not any(map(is_running, family))
    assert not root.exists()
    assert not processes_of(root)
