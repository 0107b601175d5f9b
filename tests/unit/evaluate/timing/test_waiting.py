"""The kernel's account of threads that wait for a processor."""

import os
import subprocess
import sys

import pytest

from adaexplore.evaluate.timing.waiting import waited_us

BUSY = "import os\nos.sched_setaffinity(0, {0})\nprint(flush=True)\nwhile True: pass"


@pytest.fixture
def two_on_one_core():
    processes = [
        subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) for _ in range(2)
    ]
    for process in processes:
        process.stdout.readline()
    yield [process.pid for process in processes]
    for process in processes:
        process.kill()
        process.wait()


def test_two_programs_on_one_core_wait_for_each_other(two_on_one_core, eventually):
    before = waited_us(two_on_one_core)
    assert eventually(lambda: waited_us(two_on_one_core) > before + 20_000)


def test_a_process_that_ended_waits_for_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert waited_us([process.pid]) == 0.0
    assert waited_us([os.getpid(), process.pid]) >= 0.0
