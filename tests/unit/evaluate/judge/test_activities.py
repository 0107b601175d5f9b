"""The parts of an evaluation's time."""

import time

import pytest

from adaexplore.core.verdict.evaluation import WAITING
from adaexplore.evaluate.judge import activities
from adaexplore.evaluate.judge.activities import Activities


@pytest.fixture
def clock(monkeypatch):
    """The time and the part of it that was waited, which a test moves on."""
    now = {"time": 100.0, "waited": 7.0}
    monkeypatch.setattr(time, "monotonic", lambda: now["time"])
    monkeypatch.setattr(activities, "waited_s", lambda: now["waited"])
    return now


def test_each_activity_has_its_time_without_the_waits(clock):
    found = Activities("being started")
    clock["time"] += 2
    found.begin("its first call")
    clock["time"] += 5
    clock["waited"] += 4
    found.begin("being timed")
    clock["time"] += 3
    assert found.present == "being timed"
    assert found.took_s() == {
        "being started": 2.0,
        "its first call": 1.0,
        "being timed": 3.0,
        WAITING: 4.0,
    }


def test_an_activity_that_comes_again_is_added_up(clock):
    found = Activities("running on the inputs 'normal'")
    clock["time"] += 1
    found.begin("being profiled")
    found.begin("running on the inputs 'small'")
    clock["time"] += 2
    assert found.took_s()["running on the inputs"] == 3.0
