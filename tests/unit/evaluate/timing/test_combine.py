"""Timings of several workloads as one: geometric means, with intervals in quadrature."""

import math
from dataclasses import replace

import pytest

from adaexplore.core.verdict.evaluation import Conditions, Paired, Roofline, Timing
from adaexplore.evaluate.timing.combine import (
    combined,
    combined_roofline,
    geometric_mean,
    mean_interval,
)

SLOW = Timing(100.0, (90.0, 110.0), {"eager": 200.0, "compile": 150.0}, 1.5, (1.4, 1.6), 2.0, 50)
FAST = Timing(4.0, (3.9, 4.1), {"eager": 18.0}, 4.5, (4.4, 4.6), 4.5, 90)


def test_one_workload_is_its_own_summary():
    assert combined([SLOW]) is SLOW


def test_times_and_speedups_are_geometric_means():
    both = combined([SLOW, FAST])
    assert both.time_us == pytest.approx(20.0)
    assert both.speedup == pytest.approx(math.sqrt(1.5 * 4.5))
    assert both.speedup_eager == pytest.approx(3.0)
    assert both.baselines_us == pytest.approx({"eager": 60.0})
    assert both.samples == 140


def test_without_torch_compile_on_one_workload_nothing_is_said_over_it():
    over = [replace(SLOW, speedup_compile=1.5), replace(FAST, speedup_compile=6.0)]
    assert combined(over).speedup_compile == pytest.approx(3.0)
    assert combined([*over, SLOW]).speedup_compile is None


def test_intervals_of_equal_width_shrink_with_their_number():
    low, high = mean_interval([2.0] * 4, [(1.0, 4.0)] * 4)
    assert (low, high) == pytest.approx((2 / math.sqrt(2), 2 * math.sqrt(2)))


def test_an_exact_estimate_widens_nothing():
    low, high = mean_interval([2.0, 8.0], [(1.0, 4.0), (8.0, 8.0)])
    assert (low, high) == pytest.approx((4 / math.sqrt(2), 4 * math.sqrt(2)))


def test_an_asymmetric_interval_stays_so():
    low, high = mean_interval([1.0, 1.0], [(0.5, 1.0), (0.5, 1.0)])
    assert low < high == pytest.approx(1.0)


def test_what_could_be_hidden_is_hidden_on_every_workload():
    """Noise averages out over workloads; what a candidate hides of every call does not."""
    short = Timing(5.0, (5.0, 5.0), {"eager": 8.0}, 1.6, (0.9, 1.7), 1.6, 9, allowance=(0.6, 1.0))
    both = combined([short] * 4)
    assert both.allowance == pytest.approx((0.6, 1.0))
    assert both.noise_ci == pytest.approx(mean_interval([1.6] * 4, [(1.5, 1.7)] * 4))
    assert both.speedup_ci[0] == pytest.approx(0.6 * both.noise_ci[0])


def test_a_parent_counts_only_where_all_have_it():
    parent = Paired(120.0, 1.2, (1.1, 1.3))
    assert combined([replace(SLOW, parent=parent), FAST]).parent is None
    both = combined([replace(SLOW, parent=parent), replace(FAST, parent=parent)])
    assert both.parent.speedup == pytest.approx(1.2)


def test_conditions_are_the_worst():
    first = replace(SLOW, conditions=Conditions(0.5, 1900, 40, ("heat",)))
    second = replace(FAST, conditions=Conditions(2.0, None, 60))
    assert combined([first, second]).conditions == Conditions(2.0, 1900, 60, ("heat",))


def test_rooflines_agree_with_times():
    one = Roofline(10.0, "memory", 0.1, 1e12, 0.0)
    other = Roofline(2.0, "overhead", 0.5, 1e10, 0.0)
    both = combined_roofline([one, other])
    assert both.share == pytest.approx(both.floor_us / combined([SLOW, FAST]).time_us)
    assert (both.bound_by, both.flops_per_s) == ("memory", 0.0)
    assert geometric_mean([0.0, 3.0]) == 0.0


def test_the_conditions_are_the_worst_of_all():
    measured = [
        replace(SLOW, conditions=Conditions(0.5, 1980, 71, ("power cap",))),
        replace(FAST, conditions=Conditions(2.5, 1200, 55, ("power cap", "sync boost"))),
        replace(FAST, conditions=Conditions(1.0, None, None)),
    ]
    assert combined(measured).conditions == Conditions(2.5, 1200, 71, ("power cap", "sync boost"))
