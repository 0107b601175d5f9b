"""A candidate is timed beside its parent, and without it where the parent is lost."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from adaexplore.core.verdict.evaluation import Timing
from adaexplore.evaluate.judge import measure
from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.live_parents import LiveParent
from adaexplore.evaluate.judge.measure import measure_candidate
from adaexplore.evaluate.judge.timed import ParentLostError
from adaexplore.evaluate.judge.verify import VerifiedCandidate
from adaexplore.evaluate.timing.measure import CANDIDATE, PARENT

TIMING = Timing(50.0, (49.0, 51.0), {"eager": 100.0}, 2.0, (1.9, 2.1), 2.0, 9)
NAMES = ("small", "large")


@pytest.fixture
def sessions(monkeypatch):
    """The parties of each measurement, each of which is called once."""
    sessions = []

    class Timed:
        pid = 1

        def __init__(self, talk, workload, reached, layout):
            self.reached = reached

        def block(self, count):
            return [50.0] * count

        def objection(self):
            return None

        def open_us(self):
            return 0.0

    class TimedParent:
        def __init__(self, talk, workload):
            self._talk = talk

        def block(self, count):
            if self._talk.ended:
                raise ParentLostError
            return [60.0] * count

        def end(self):
            self._talk.ends += 1

    def together(parties, effort, **_):
        sessions.append(set(parties))
        for block in parties.values():
            block(1)
        return replace(TIMING)

    monkeypatch.setattr(measure, "TimedCandidate", Timed)
    monkeypatch.setattr(measure, "TimedParent", TimedParent)
    monkeypatch.setattr(measure, "measure", together)
    return sessions


@pytest.fixture
def parent():
    talk = SimpleNamespace(pid=2, ended=False, ends=0)
    dropped = []
    return SimpleNamespace(
        live=LiveParent(talk, lambda: dropped.append(True)), talk=talk, dropped=dropped
    )


def timings(parent):
    def blocks(_, names):
        return {name: lambda count: [100.0] * count for name in names}

    workloads = [
        SimpleNamespace(
            name=name,
            baselines=SimpleNamespace(blocks=blocks),
            fresh=SimpleNamespace(count=3),
            baselines_us={"eager": 100.0},
        )
        for name in NAMES
    ]
    reference = SimpleNamespace(
        timed=workloads, beside=("eager",), problem=SimpleNamespace(device="cpu"), brief=False
    )
    verified = VerifiedCandidate(Reached(), dict.fromkeys(NAMES, ()))
    talk = SimpleNamespace(stage="")
    found = measure_candidate(talk, reference, verified, parent, {}, every_baseline=False)
    return found.timings


def test_a_live_parent_is_timed_on_every_workload(sessions, parent):
    assert set(timings(parent.live)) == set(NAMES)
    assert sessions == [{CANDIDATE, "eager", PARENT}] * 2
    assert (parent.live.lost, parent.dropped, parent.talk.ends) == (False, [], 2)


def test_a_lost_parent_is_dropped_and_the_candidate_timed_without_it(sessions, parent):
    parent.talk.ended = True
    assert set(timings(parent.live)) == set(NAMES)
    without = {CANDIDATE, "eager"}
    assert sessions == [without | {PARENT}, without, without]
    assert (parent.live.lost, parent.dropped, parent.talk.ends) == (True, [True], 1)


def test_without_a_parent_none_is_timed(sessions):
    timings(None)
    assert sessions == [{CANDIDATE, "eager"}] * 2
