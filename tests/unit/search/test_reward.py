import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.verdict.evaluation import (
    Estimate,
    Evaluation,
    Failed,
    FailureStatus,
    Passed,
    Timing,
)
from adaexplore.search.reward import log_speedup, published, reward_function


def passed(speedup: float, speedup_eager: float | None = None) -> Passed:
    eager = speedup if speedup_eager is None else speedup_eager
    baselines = {"eager": eager, "compile": speedup}
    return Passed("fp32", 1e-7, Timing(1.0, (1.0, 1.0), baselines, speedup, (1, 1), eager, 100))


@pytest.mark.parametrize("reward", [published, log_speedup])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("compile_error", 0.0),
        ("rejected", 0.0),
        ("infra_error", 0.0),
        ("runtime_error", 0.05),
        ("timeout", 0.05),
        ("out_of_memory", 0.05),
        ("wrong_output", 0.05),
    ],
)
def test_the_reward_of_a_failure_depends_on_its_stage(reward, status: FailureStatus, expected):
    assert reward(Failed(status, "reason")) == expected


@pytest.mark.parametrize(
    ("speedup", "expected"),
    [
        (0.01, 0.4),  # clipped at 0.1
        (0.1, 0.4),
        (1.0, 0.4 + 1.2 * 0.9 / 9.9),  # 0.50909...
        (2.0, 0.4 + 1.2 * 1.9 / 9.9),  # 0.63030...
        (10.0, 1.6),
        (926.0, 1.6),  # clipped at 10
    ],
)
def test_published_values_match_a_hand_computation(speedup, expected):
    assert published(passed(speedup)) == pytest.approx(expected)


def test_published_rounds_to_the_numbers_in_the_paper():
    assert round(published(passed(1.0)), 3) == 0.509
    assert round(published(passed(2.0)), 2) == 0.63


def test_published_uses_the_speedup_over_eager_and_log_the_like_for_like_one():
    evaluation = passed(speedup=0.5, speedup_eager=4.0)
    assert published(evaluation) == published(passed(4.0))
    assert log_speedup(evaluation) == log_speedup(passed(0.5))


@pytest.mark.parametrize(
    ("speedup", "expected"),
    [
        # k = 1.2 / (1 + ln 10) = 1.2 / 3.302585 = 0.363352
        (1e-9, 0.4),  # f = -1: only the floor remains
        (0.5, 0.4 + 0.363352 * 0.5),  # f = -0.5
        (1.0, 0.763352),  # f = 0: 0.4 + k
        (2.0, 1.015208),  # f = ln 2 = 0.693147: 0.763352 + 0.251856
        (10.0, 1.6),
        (20.0, 1.851856),  # one doubling above 10x
    ],
)
def test_log_values_match_a_hand_computation(speedup, expected):
    assert log_speedup(passed(speedup)) == pytest.approx(expected, abs=2e-6)


speedups = st.floats(min_value=1e-3, max_value=1e4)


@given(speedups, st.floats(min_value=1.001, max_value=100))
def test_log_increases_strictly_and_every_doubling_above_1x_adds_the_same(speedup, factor):
    assert log_speedup(passed(speedup * factor)) > log_speedup(passed(speedup))
    if speedup >= 1:
        gain = log_speedup(passed(2 * speedup)) - log_speedup(passed(speedup))
        assert gain == pytest.approx(0.251856, abs=1e-6)


@given(speedups, st.sampled_from([published, log_speedup]))
def test_correct_earns_more_than_wrong_and_wrong_more_than_not_compiled(speedup, reward):
    wrong: Evaluation = Failed("wrong_output", "off by 3")
    broken: Evaluation = Failed("compile_error", "no such name")
    assert reward(passed(speedup)) >= 0.4 > reward(wrong) > reward(broken) == 0


@given(st.floats(min_value=0.5, max_value=2.0))
def test_log_and_its_slope_are_continuous(speedup):
    # The slope is k below 1x and k/s <= k above it, so a step of 1e-6 moves it by at most 3.7e-7.
    step = log_speedup(passed(speedup + 1e-6)) - log_speedup(passed(speedup))
    assert 0 < step <= 3.7e-7


@pytest.mark.parametrize("reward", [published, log_speedup])
def test_an_estimate_earns_the_reward_of_a_speedup_of_one(reward):
    estimated = Passed("fp32", 1e-7, Estimate(1e-3, "memory", "sm_90"))
    assert reward(estimated) == reward(passed(1.0))


@pytest.mark.parametrize("name", ["log", "published"])
def test_a_module_that_loads_has_compiled_where_that_is_asked_for(name):
    at_launch = Failed("compile_error", "no such name in k", loaded=True)
    at_import = Failed("compile_error", "no ModelNew")
    assert reward_function(name, "module")(at_launch) == 0.05
    assert reward_function(name, "module")(at_import) == 0
    assert reward_function(name)(at_launch) == 0


def test_reward_functions_are_found_by_name():
    assert reward_function("log")(passed(20.0)) > 1.6
    assert reward_function("published")(passed(20.0)) == pytest.approx(1.6)
    assert math.isfinite(reward_function("log")(passed(1e-300)))
