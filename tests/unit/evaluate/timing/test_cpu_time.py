"""CPU time of real processes and their children."""

import os
import subprocess
import sys
import time

import pytest

from adaexplore.evaluate.timing.cpu_time import CpuClocks, CpuMeter, waited_us

BUSY = "import os\nos.sched_setaffinity(0, {0})\nprint(flush=True)\nwhile True: pass"


def spin(seconds):
    start = time.process_time()
    while time.process_time() < start + seconds:
        pass


@pytest.mark.parametrize("looks", [False, True], ids=["unseen", "seen alive"])
def test_a_child_that_was_waited_for_counts_once(looks):
    meter = CpuMeter(os.getpid())
    before = meter.read()
    ready, end = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        spin(0.3)
        os.write(ready[1], b"x")
        os.read(end[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    if looks:
        assert 0.25 <= meter.read() - before < 0.5
    os.write(end[1], b"x")
    os.waitpid(child, 0)
    assert 0.25 <= meter.read() - before < 0.5


class TestClocks:
    def test_they_show_what_a_meter_is_too_coarse_for(self):
        clocks = CpuClocks(os.getpid(), lambda: 0)
        before_us = clocks.read_us()
        spin(0.003)
        assert 2_900.0 <= clocks.read_us() - before_us < 2_000_000.0

    def test_a_new_child_counts_once_its_creation_is_known(self):
        created = 0
        clocks = CpuClocks(os.getpid(), lambda: created)
        clocks.read_us()
        spun, end = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            spin(0.2)
            os.write(spun[1], b"x")
            os.read(end[0], 1)
            os._exit(0)
        os.read(spun[0], 1)
        without_us, created = clocks.read_us(), 1
        assert clocks.read_us() - without_us >= 190_000.0
        os.write(end[1], b"x")
        os.waitpid(child, 0)
        assert clocks.read_us() <= without_us + 190_000.0  # its clock is gone


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
