import time

import pytest
import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.truth import truth
from adaexplore.evaluate.truth.room import FreeMemory, wait_for_room, wanted_by
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


def test_what_was_asked_for_is_wanted():
    error = RuntimeError("it does not fit")
    error.__cause__ = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.50 GiB. ...")
    assert wanted_by(error, "cuda:0") == 3 << 29


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
    def sets(free=80, held=0, **options):
        monkeypatch.setattr(truth, "room_on", lambda _: FreeMemory(free, 80, held))
        problem = Problem("example", SOURCE, "cpp", "cpu")
        instance, notes = Instance.of(problem, tmp_path), []
        runs = ReferenceRuns(problem, instance, instance.inputs(0))
        return len(Truths(runs, notes, **options).sets), notes

    return sets


def test_where_others_leave_little_three_sets_must_do(sets):
    assert sets() == (9, [])
    assert sets(free=4) == (3, ["memory: verified on 3 input sets only"])
    assert sets(held=9)[0] == 3
    assert sets(fewest=True)[0] == 3
