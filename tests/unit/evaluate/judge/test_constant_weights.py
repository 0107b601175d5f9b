"""The label of candidates that are faster while weights are constant."""

from types import SimpleNamespace

import pytest

from adaexplore.evaluate.judge.diagnosis import constant_weights
from adaexplore.evaluate.judge.diagnosis.constant_weights import use_of_constants
from adaexplore.evaluate.truth.given.constants import MovedConstants

SLOW, FAST = 200.0, 100.0


@pytest.mark.parametrize(
    ("times_us", "labelled"),
    [
        ([SLOW, FAST, SLOW, FAST, SLOW, FAST], True),
        ([FAST], False),
        ([SLOW, SLOW], False),
        ([SLOW, FAST, FAST], False),
        ([SLOW, FAST, SLOW, FAST, SLOW, SLOW], False),
    ],
    ids=["slower every time", "never slower", "both slow", "slow once", "slow twice"],
)
def test_the_label_asks_for_slower_calls_in_every_pair(monkeypatch, times_us, labelled):
    """Each pair has the time with other values of the weights, then the time with the constants."""
    times = iter(times_us)
    monkeypatch.setattr(constant_weights, "rebuild", lambda *_: None)
    monkeypatch.setattr(constant_weights, "_Moved", lambda *_: None)
    monkeypatch.setattr(constant_weights, "TimedCandidate", lambda *_: None)
    monkeypatch.setattr(constant_weights, "_time_us", lambda *_: next(times))
    constants = MovedConstants(1, {"b.weight": None}, {}, [])
    workload = SimpleNamespace(name="only", truths=SimpleNamespace(moved_constants=constants))
    reference = SimpleNamespace(first=workload, timed=[workload])
    verified = SimpleNamespace(follows=object(), layouts={"only": None}, reached=None)
    timings = {"only": SimpleNamespace(speedup=2.0, time_us=FAST)}
    talk = SimpleNamespace(ask=lambda _: None)
    found = use_of_constants(talk, reference, verified, timings)
    assert bool(found.labels) is labelled
    assert next(times, None) is None
