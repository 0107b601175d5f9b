"""Headroom of a problem and stopping rules of a search."""

import math
from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.core.verdict.facts import ReferenceFacts, ReferenceRoofline
from adaexplore.search.headroom import best_measured, headroom, roofline_share, stop_reason

ROOFLINE = ReferenceRoofline(8, 0, 20.0, "memory", 4e5, {}, 2.0)
FACTS = ReferenceFacts(baselines_us={"eager": 100.0, "compile": 80.0}, roofline=ROOFLINE)


def steps(*speedups):
    """Return steps by their speedup over 80 µs; None for a failure, "lost" for an infra error."""
    return [step(number, found) for number, found in enumerate(speedups, 1)]


def step(number, found):
    if found is None or found == "lost":
        evaluation = Failed("infra_error" if found else "wrong_output", "no")
    else:
        time_us = 80.0 / found
        timing = Timing(time_us, (time_us, time_us), {}, found, (found, found), found, 10)
        evaluation = Passed("fp32", 0.0, timing)
    return Node(number, 0, "large", Proposal(Candidate("", "cpp"), "x", ""), evaluation)


def test_headroom_starts_from_the_better_baseline():
    assert headroom([], FACTS) == pytest.approx(math.log(4))
    assert headroom(steps(None, 0.5), FACTS) == pytest.approx(math.log(4))


def test_headroom_shrinks_with_the_best_kernel_and_is_never_negative():
    assert headroom(steps(2.0, 1.5, None), FACTS) == pytest.approx(math.log(2))
    assert headroom(steps(4.2), FACTS) == 0.0
    assert roofline_share(steps(4.2), FACTS) == pytest.approx(1.05)


def test_a_floor_far_above_a_measured_time_is_disproved():
    assert headroom(steps(5.0), FACTS) is None
    assert stop_reason(steps(5.0), FACTS, Config(stop_near=0.9)) is None


@pytest.mark.parametrize("facts", [ReferenceFacts(), ReferenceFacts(baselines_us={"eager": 1.0})])
def test_without_a_floor_the_headroom_is_unknown(facts):
    assert headroom(steps(2.0), facts) is None
    assert roofline_share(steps(2.0), facts) is None
    assert stop_reason(steps(2.0), facts, Config(stop_near=0.1)) is None


def test_the_first_of_equally_fast_kernels_is_the_best():
    node, timing = best_measured(steps(None, 2.0, 2.0, 1.0))
    assert (node.id, timing.speedup) == (2, 2.0)
    assert best_measured(steps(None)) is None


def test_a_search_without_stopping_rules_never_stops():
    assert stop_reason(steps(*[None] * 200, 4.0), FACTS, Config()) is None


def test_a_search_stops_near_the_roofline():
    settings = Config(stop_near=0.9)
    assert stop_reason(steps(3.5), FACTS, settings) is None
    assert stop_reason(steps(3.7), FACTS, settings) == "near the roofline: 92 % of it reached"


def test_a_fast_baseline_does_not_stop_a_search_without_a_correct_kernel():
    facts = replace(FACTS, roofline=replace(ROOFLINE, floor_us=79.0))
    settings = Config(stop_near=0.9)
    assert stop_reason(steps(None), facts, settings) is None
    assert stop_reason(steps(None, 0.7), facts, settings)


def test_a_search_stops_on_a_flat_curve():
    settings = Config(stop_flat=3)
    assert stop_reason(steps(2.0, 1.0, None), FACTS, settings) is None
    reason = stop_reason(steps(2.0, 1.0, None, 2.01), FACTS, settings)
    assert reason == "flat: the last 3 steps gained less than 1 %"
    assert stop_reason(steps(2.0, 1.0, None, 2.1), FACTS, settings) is None


def test_many_small_gains_are_not_a_flat_curve():
    curve = [1.5 * 1.005**step for step in range(20)]
    assert stop_reason(steps(*curve), FACTS, Config(stop_flat=3)) is None


def test_infrastructure_errors_do_not_flatten_the_curve():
    settings = Config(stop_flat=2)
    assert stop_reason(steps(2.0, "lost", "lost", "lost"), FACTS, settings) is None
    assert stop_reason(steps(2.0, "lost", None, None), FACTS, settings)
