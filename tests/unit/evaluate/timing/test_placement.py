"""Threads of a stopped process get processors of their own, for as long as a block lasts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.evaluate.timing.placement import threads_apart

TWO_THREADS = """
import threading
for _ in range(2):
    threading.Thread(target=lambda: sum(range(10**7)) and threading.Event().wait()).start()
print(flush=True)
"""


@pytest.fixture
def stopped():
    process = subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdout=subprocess.PIPE)
    process.stdout.readline()
    os.kill(process.pid, signal.SIGSTOP)
    yield process.pid
    process.kill()
    process.wait()


def allowed(pid):
    return [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()]


def test_threads_are_apart_in_the_body_alone(stopped):
    processors = os.sched_getaffinity(0)
    with threads_apart(stopped):
        placed = [one for one in allowed(stopped) if len(one) == 1]
        assert len(placed) == min(len(processors), 3)
        assert set.union(*placed) <= processors
        assert len(set.union(*placed)) == len(placed)
    assert all(one == processors for one in allowed(stopped))


def test_a_process_that_ended_has_no_threads():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with threads_apart(process.pid):
        pass
