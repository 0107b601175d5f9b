"""Timed blocks of a candidate that answers at once, in this process; the turnstile is real."""

import itertools
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.timed import TimedCandidate, TimedParent
from adaexplore.evaluate.timing.audit import Own
from adaexplore.evaluate.timing.turnstile.on_host import HostGate, HostTurnstile
from adaexplore.evaluate.wire import messages as wire
from adaexplore.sandbox.cores import CORES

COUNT = 8

timed_module = sys.modules[TimedCandidate.__module__]


class Talk:
    """The conversation with a candidate that passes its turnstile and computes nothing."""

    def __init__(self, pid):
        self.pid = pid
        self.created_tasks = 0
        self.turnstile = HostTurnstile()
        self._gate = HostGate(self.turnstile.other_end)
        self.processors = []

    def ask(self, request):
        if not isinstance(request, wire.Time):
            return None
        self.processors.append(os.sched_getaffinity(self.pid))
        for i in range(request.count):
            self._gate.enter(i)
        self._gate.leave()
        return wire.CallTimes((1000.0,) * request.count)

    def thaw(self):
        pass

    def freeze(self):
        pass


class Ring:
    tensors = ()

    def copy_of(self, index):
        return torch.tensor([float(index)])


class Fresh:
    """Inputs by number; the output of call `i` is `i`."""

    def __init__(self):
        self.given = SimpleNamespace(open=lambda index: 0, open_slowly=False)

    def places(self, layout):
        return [Ring()]

    def refill(self, count):
        pass

    def poison(self, count):
        pass

    def original(self, index):
        return index


class Workload:
    def __init__(self):
        self.problem = SimpleNamespace(device="cpu")
        self.fresh = Fresh()
        self.set_numbers = (0,)
        self.first_slot = 0
        self.baselines = SimpleNamespace(own=Own(0.0, 0.0))
        self.compared = []

    def is_near(self, original, outputs, precision):
        self.compared.append((original, int(outputs[0])))
        return True


@pytest.fixture(scope="module")
def stranger():
    """The number of a process that sleeps."""
    process = subprocess.Popen(["sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def blocks(stranger):
    """The calls that were compared in each block."""
    workload = Workload()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timed_module, "may_read", lambda pid: False)
        timed = TimedCandidate(Talk(stranger), workload, Reached(), ())
    found = []
    for _ in range(160):
        workload.compared = []
        timed.block(COUNT)
        found.append(workload.compared)
    return found


def test_any_call_of_a_block_may_be_the_one_that_is_compared(blocks):
    assert all(call == output for block in blocks for call, output in block)
    chosen = Counter(call for block in blocks for call, _ in block)
    # Of 160, each of 8 has 38, standard deviation 5; none at all is as good as impossible.
    assert set(chosen) == set(range(COUNT))
    assert max(chosen.values()) < 70


def test_after_a_compared_call_another_may_follow(blocks):
    assert all(blocks)
    later = Counter(call for block in blocks for call, _ in block[1:])
    # Most likely is a second comparison at the last call: in 19 of 160 blocks.
    assert set(later) == set(range(1, COUNT))


def test_which_one_comes_next_does_not_follow_from_the_ones_before(blocks):
    first = [block[0][0] for block in blocks]
    steps = Counter((b - a) % COUNT for a, b in itertools.pairwise(first))
    assert len(steps) == COUNT
    assert max(steps.values()) < 45


@pytest.mark.skipif(not os.sched_getaffinity(0) >= {0, 1}, reason="needs processors 0 and 1")
def test_a_parent_has_the_cores_of_measurements_while_it_is_timed(stranger, monkeypatch):
    monkeypatch.setenv(CORES, "1/0")
    talk = Talk(stranger)
    assert TimedParent(talk, Workload()).block(COUNT) == [1000.0] * COUNT
    assert talk.processors == [{1}]
    assert os.sched_getaffinity(stranger) == {0}
