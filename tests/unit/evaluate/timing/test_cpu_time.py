"""CPU time of real processes and their children."""

import os
import time

import pytest

from adaexplore.evaluate.timing.cpu_time import CpuMeter


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
