"""Intervals over problems and seeds: wide where little is known, right as often as they say."""

import math
from statistics import NormalDist, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.report.compare.resample import (
    PairedRuns,
    geometric_means,
    mean_intervals,
    permutation_p,
    sample_size,
)

LOGS = st.floats(-3, 3)


def test_the_geometric_mean_of_ratios():
    units = [
        PairedRuns([[math.log(4)]], [[math.log(2)]]),
        PairedRuns([[math.log(1)], [math.log(4)]], [[math.log(4)]]),
    ]
    assert geometric_means(units) == [pytest.approx(1.0)]  # 2 and 1/2


def test_one_run_of_one_problem_has_no_interval():
    assert mean_intervals([PairedRuns([[0.1, 0.2]])]) == [None, None]
    assert mean_intervals([PairedRuns([[0.1], [0.4]], [[0.0]])]) == [None]


def test_several_runs_of_one_problem_have_an_interval():
    unit = PairedRuns([[0.1], [0.4], [0.2]])
    assert sample_size([unit]) == 3
    [(low, high)] = mean_intervals([unit])
    assert (low, high) == (pytest.approx(math.exp(0.1)), pytest.approx(math.exp(0.4)))


def test_differing_seeds_widen_the_interval():
    quiet = [PairedRuns([[0.1 * i], [0.1 * i]]) for i in range(8)]
    loud = [PairedRuns([[0.1 * i - 0.5], [0.1 * i + 0.5]]) for i in range(8)]
    [narrow], [wide] = mean_intervals(quiet), mean_intervals(loud)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_intervals_are_deterministic():
    units = [PairedRuns([[0.1 * i]]) for i in range(7)]
    assert mean_intervals(units) == mean_intervals(units)


@settings(max_examples=30)
@given(st.lists(LOGS, min_size=2, max_size=9))
def test_the_interval_contains_the_mean_and_stays_within_the_data(logs):
    units = [PairedRuns([[log]]) for log in logs]
    [mean], [(low, high)] = geometric_means(units), mean_intervals(units)
    assert math.exp(min(logs)) * (1 - 1e-9) <= low <= mean * (1 + 1e-9)
    assert mean * (1 - 1e-9) <= high <= math.exp(max(logs)) * (1 + 1e-9)


@pytest.mark.parametrize(("count", "student"), [(6, 2.571), (8, 2.365), (16, 2.131), (40, 2.023)])
def test_the_interval_of_normal_logs_is_close_to_students(count, student):
    logs = [NormalDist(0.2, 0.3).inv_cdf((i + 0.5) / count) for i in range(count)]
    [(low, high)] = mean_intervals([PairedRuns([[log]]) for log in logs])
    half = student * stdev(logs) / math.sqrt(count)
    assert math.log(high / low) / 2 == pytest.approx(half, rel=0.08)


def test_the_sign_flip_test_counts_the_signs_that_are_as_extreme():
    units = [PairedRuns([[value]], [[0.0]]) for value in (0.3, 0.2, 0.1, -0.05)]
    # |sum| >= 0.55: all as they are, the last one flipped, and their negatives: 4 of 16
    assert permutation_p(units) == pytest.approx(4 / 16)


def test_differences_that_cancel_out_decide_nothing():
    fast, slow, slower, wrong = ([math.log(s)] for s in (3.0, 1.1, 0.4, 0.1))
    units = [
        PairedRuns([fast, wrong], [wrong, slow]),
        PairedRuns([wrong, slow], [wrong, slower]),
        PairedRuns([wrong, slower], [wrong, fast]),
    ]
    assert permutation_p(units) == 1.0  # the sums differ by rounding alone


def test_many_problems_are_drawn_and_one_alone_exchanges_its_runs():
    assert permutation_p([PairedRuns([[0.1 + i / 100]], [[0.0]]) for i in range(20)]) < 0.001
    assert permutation_p([PairedRuns([[(-1.0) ** i]], [[0.0]]) for i in range(20)]) > 0.5
    single = [PairedRuns([[1.0], [1.1], [1.2]], [[0.0], [0.1], [0.2]])]
    assert permutation_p(single) == pytest.approx(2 / 20)
    assert permutation_p([PairedRuns([[1.0]], [[0.0]])]) is None
