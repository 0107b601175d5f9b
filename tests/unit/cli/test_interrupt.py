"""Ctrl-C, as a terminal sends it, to a real process that a slow reference keeps busy."""

import os
import signal
import subprocess
import sys

import pytest

SLOW = """
import os, time
from pathlib import Path
class Model:
    ...
def get_inputs():
    ...
Path({pid!r}).write_text(str(os.getpid()))
time.sleep(600)
"""
# Workers import what they need: preloading it would cost this test ten seconds.
COMMAND = """
from adaexplore.cli import main, session
session._PRELOAD = ()
session._WARM_CPP = "adaexplore"
main()
"""


@pytest.fixture
def pid_path(tmp_path):
    """Where the reference's process says which one it is."""
    return tmp_path / "pid"


@pytest.fixture
def started(file, tmp_path, pid_path):
    """A search that is waiting for its reference."""
    source = SLOW.format(pid=str(pid_path))
    words = ["explore", file("slow.py", source), "--device", "cpu", "--run", tmp_path / "run"]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_it_ends_the_search_in_order(started, tmp_path, pid_path, eventually, is_running):
    assert eventually(lambda: pid_path.exists() and pid_path.read_text())
    reference_pid = int(pid_path.read_text())
    assert is_running(reference_pid)
    os.killpg(started.pid, signal.SIGINT)  # a terminal sends it to the whole group
    output = started.stdout.read()
    assert started.wait(60) == 130, output
    assert "stopped after 0 of 20 steps; nothing recorded is lost" in output
    assert f"adaexplore resume {tmp_path / 'run'}" in output
    assert "Traceback" not in output
    assert {"run.db", "report.html"} <= {entry.name for entry in (tmp_path / "run").iterdir()}
    assert not is_running(reference_pid)
