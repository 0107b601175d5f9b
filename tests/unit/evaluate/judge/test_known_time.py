"""A candidate that tells the code of an earlier one gets its time only if it is about as fast."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from adaexplore.core.verdict.evaluation import Passed, Timing, WorkloadTiming
from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.diagnosis import known_time
from adaexplore.evaluate.judge.diagnosis.known_time import has_time_of
from adaexplore.evaluate.judge.verify import VerifiedCandidate


def timing(time_us):
    return Timing(time_us, (time_us, time_us), {"eager": 200.0}, 2.0, (1.9, 2.1), 2.0, 9)


ONE = Passed("fp32", 0.0, timing(100.0))
TWO = Passed(
    "fp32",
    0.0,
    timing(100.0),
    workloads=(WorkloadTiming("small", timing(100.0)), WorkloadTiming("large", timing(1000.0))),
)


@pytest.fixture
def told(monkeypatch):
    """Has a candidate timed briefly; tells whether it gets the time of `same`."""

    def told(times_us, same=ONE, objection=None):
        asked = []

        class Timed:
            def __init__(self, talk, workload, reached, layout):
                self.name = workload.name
                assert layout == f"layout of {workload.name}"

            def brief_us(self, known_us):
                asked.append((self.name, known_us))
                return times_us[self.name]

            def objection(self):
                return objection

        monkeypatch.setattr(known_time, "TimedCandidate", Timed)
        workloads = [SimpleNamespace(name=name) for name in times_us]
        layouts = {name: f"layout of {name}" for name in times_us}
        verified = VerifiedCandidate(Reached(), layouts)
        is_same = has_time_of(None, SimpleNamespace(timed=workloads), verified, same)
        return is_same, asked

    return told


@pytest.mark.parametrize(("time_us", "is_same"), [(30.0, True), (124.0, True), (126.0, False)])
def test_a_time_up_to_a_quarter_longer_confirms_the_known_one(told, time_us, is_same):
    assert told({"small": time_us}) == (is_same, [("small", 100.0)])


def test_times_that_cannot_be_believed_confirm_nothing(told):
    assert told({"small": 50.0}, objection="work out of the timer's sight")[0] is False


@pytest.mark.parametrize(("large_us", "is_same"), [(1000.0, True), (1300.0, False)])
def test_every_workload_is_held_against_its_own_time(told, large_us, is_same):
    found = told({"small": 100.0, "large": large_us}, TWO)
    assert found == (is_same, [("small", 100.0), ("large", 1000.0)])


def test_the_first_contradiction_is_enough(told):
    assert told({"small": 200.0, "large": 1000.0}, TWO) == (False, [("small", 100.0)])
