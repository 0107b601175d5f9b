import time

import pytest
import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.truth import truth
from adaexplore.evaluate.truth.device_memory.room import (
    FreeMemory,
    leaves_room,
    wait_for_room,
    wanted_by,
)
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance


@pytest.mark.parametrize(
    ("free", "wanted", "found", "waits"),
    [
        ([50], 40, True, 0),
        ([10, 20, 60], 40, True, 2),
        ([10], 40, False, 3),
        ([10], 90, False, 0),  # more than there is in all
    ],
)
def test_room_is_waited_for_as_long_as_it_may_come(monkeypatch, free, wanted, found, waits):
    readings, slept = list(free), []
    monkeypatch.setattr(time, "sleep", slept.append)

    def read():
        return FreeMemory(readings.pop(0) if len(readings) > 1 else readings[0], 80)

    assert wait_for_room(wanted, read, 6.0) == found
    assert len(slept) == waits


def test_room_that_may_not_come_is_not_waited_for(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    full = FreeMemory(10, 80, held=20)
    assert not wait_for_room(40, lambda: full, 6.0, lambda: len(slept) < 2)
    assert len(slept) == 2
    slept.clear()
    assert not wait_for_room(61, lambda: full, 6.0)  # more than there is beside what it holds
    assert not slept


def test_what_was_asked_for_is_wanted():
    error = RuntimeError("it does not fit")
    error.__cause__ = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.50 GiB. ...")
    assert wanted_by(error, "cuda:0") == 3 << 29


TRUTH_BYTES = 16 * 32 * 8
SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)
    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.randn(16, 32)]
"""


@pytest.fixture
def sets(tmp_path, monkeypatch):
    def sets(free=80, held=0, total=80, **options):
        monkeypatch.setattr(truth, "room_on", lambda _: FreeMemory(free, total, held))
        problem = Problem("example", SOURCE, "cpp", "cpu")
        instance, notes = Instance.of(problem, tmp_path), []
        runs = ReferenceRuns(problem, instance, instance.inputs(0))
        return len(Truths(runs, notes, **options).sets), notes

    return sets


def test_where_others_leave_little_three_sets_must_do(sets):
    total = TRUTH_BYTES * 16
    assert sets(free=total, total=total) == (9, [])
    assert sets(free=4, total=total) == (3, ["memory: verified on 3 input sets only"])
    assert sets(free=total, held=total // 9, total=total)[0] == 3
    assert sets(free=total, total=total, fewest=True)[0] == 3


def test_two_sets_must_do_where_one_takes_much_of_the_memory(sets):
    total = TRUTH_BYTES * 16 - 16
    assert sets(free=0, total=total) == (2, ["memory: verified on 2 input sets only"])
    assert sets(free=total, total=total)[0] == 9


@pytest.mark.parametrize(("free", "leaves"), [(40, True), (30, True), (29, False)])
def test_a_large_truth_stays_on_a_gpu_of_which_a_quarter_remains_free(free, leaves):
    assert leaves_room(FreeMemory(free, 80), 10) == leaves
