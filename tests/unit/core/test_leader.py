"""The leading step, by the evaluations of the search and of the confirmation."""

from dataclasses import replace

import pytest

from adaexplore.core.leader import Leader, is_refuted, leader_of
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing

WRONG = Failed("wrong_output", "off by one")
LOST = Failed("infra_error", "the machine is gone")


def passed(speedup):
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, (speedup, speedup), speedup, 7)
    return Passed("fp32", 1e-7, timing)


SEARCHED = {1: passed(1.2), 2: WRONG, 3: passed(1.5), 4: passed(1.4)}


@pytest.mark.parametrize(
    ("confirmed", "leader"),
    [
        ({}, Leader(3, passed(1.5))),
        ({3: passed(1.45)}, Leader(3, passed(1.45), confirmed=True)),
        # A faster step that was found later leads at once, over an older one that was confirmed.
        ({1: passed(1.2)}, Leader(3, passed(1.5))),
        ({1: passed(1.2), 4: passed(1.45)}, Leader(3, passed(1.5))),
        # Once the fastest is confirmed, the confirmations alone decide.
        ({3: passed(1.3), 4: passed(1.4)}, Leader(4, passed(1.4), confirmed=True)),
        # A failure refutes a step; trouble of the machine says nothing.
        ({3: WRONG}, Leader(4, passed(1.4))),
        ({3: WRONG, 4: passed(1.38)}, Leader(4, passed(1.38), confirmed=True)),
        ({3: LOST}, Leader(3, passed(1.5))),
        ({1: WRONG, 3: WRONG, 4: WRONG}, Leader(3, passed(1.5))),
        # A confirmation of no step of the search counts for nothing.
        ({3: passed(1.3), 9: passed(9.0)}, Leader(3, passed(1.3), confirmed=True)),
    ],
)
def test_the_fastest_leads_until_confirmations_of_it_say_otherwise(confirmed, leader):
    assert leader_of(SEARCHED, confirmed) == leader


@pytest.mark.parametrize("confirmed", [{}, {3: passed(1.5)}, {4: passed(1.4)}])
def test_a_step_that_rests_on_luck_does_not_lead(confirmed):
    lucky = replace(SEARCHED[3], labels=("waits-for-blocks",))
    confirmed = {
        i: replace(each, labels=lucky.labels if i == 3 else ()) for i, each in confirmed.items()
    }
    assert leader_of({**SEARCHED, 3: lucky}, confirmed).node_id == 4
    assert leader_of({3: lucky}, {}) == Leader(3, lucky)
    allowed = replace(lucky, labels=("waits-for-blocks:allowed",))
    assert leader_of({**SEARCHED, 3: allowed}, {}).node_id == 3


def test_without_a_right_step_nothing_leads():
    assert leader_of({}, {}) is None
    assert leader_of({1: WRONG, 2: LOST}, {1: WRONG}) is None


def test_only_a_failure_of_the_kernel_refutes_it():
    assert is_refuted(WRONG)
    assert not any(map(is_refuted, (None, LOST, passed(0.5))))
