"""Ctrl-C or SIGTERM to a real process that a slow reference keeps busy."""

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
from adaexplore.cli import main
from adaexplore.run import processes
processes.PRELOAD = ()
main()
"""

AT_ONCE = """
import os
import signal
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "adaexplore.cli.app":
            os.kill(os.getpid(), signal.{name})

sys.meta_path.insert(0, Interrupting())
from adaexplore.cli import main
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
        # A shell's background job ignores it, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", -signal.SIGTERM)])
def test_while_the_command_line_is_imported_it_ends_quietly(name, code):
    command = [sys.executable, "-c", AT_ONCE.format(name=name)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("send", "number"), [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)]
)
def test_before_a_run_is_made_it_ends_in_order(
    started, tmp_path, pid_path, eventually, is_running, send, number
):
    assert eventually(lambda: pid_path.exists() and pid_path.read_text())
    reference_pid = int(pid_path.read_text())
    assert is_running(reference_pid)
    send(started.pid, number)  # a terminal sends Ctrl-C to the whole group
    output = started.stdout.read()
    assert started.wait(60) == (130 if number == signal.SIGINT else -number), output
    assert "stopped before the first step; no run was made" in output
    assert "Traceback" not in output
    assert not (tmp_path / "run").exists()
    assert not is_running(reference_pid)
