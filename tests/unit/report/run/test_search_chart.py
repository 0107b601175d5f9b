from __future__ import annotations

import math

import pytest
from hand_made import PROBLEM, estimated, failed, node, passed, run_info
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.report import summarize
from adaexplore.report.axes import NARROW, WIDE, ratio_ticks, step_ticks
from adaexplore.report.run.chart import make_chart


def chart(nodes, size=WIDE, **info):
    return make_chart(summarize(PROBLEM, nodes, run_info(**info)), size)


def test_twice_as_fast_and_half_as_fast_lie_equally_far_from_the_baseline():
    result = chart([node(1, passed(2.0)), node(2, passed(0.5))])
    fast, slow = result.marks

    assert result.baseline_y - fast.y == pytest.approx(slow.y - result.baseline_y, abs=0.2)
    assert fast.y < result.baseline_y


def test_intervals_span_their_mark_and_failures_stand_below_the_plot():
    good, bad = chart([node(1, passed(1.5)), node(2, failed())]).marks

    assert good.high_y < good.y < good.low_y
    assert bad.y > WIDE.plot_bottom
    assert bad.kind == "failed"


def test_estimates_have_no_place_on_the_scale():
    good, guess = chart([node(1, passed(1.5)), node(2, estimated(1e-3))]).marks

    assert (guess.kind, guess.low_y) == ("unmeasured", guess.high_y)
    assert guess.y > WIDE.plot_bottom > good.y


def test_the_staircase_steps_only_where_the_best_improves():
    result = chart([node(1, passed(1.0)), node(2, passed(0.7)), node(3, passed(1.6))])

    assert result.staircase.count("V") == 1
    assert result.staircase.endswith(f"H{WIDE.plot_right}")


def test_a_confirmation_is_marked_with_its_own_value():
    result = chart([node(1, passed(1.5))], confirmations={1: passed(1.2)})

    assert result.confirmation.y > result.marks[0].y


@given(
    st.lists(st.one_of(st.none(), st.floats(1e-4, 1e4)), max_size=40),
    st.sampled_from([WIDE, NARROW]),
)
def test_every_mark_stays_inside_the_chart(speedups, size):
    nodes = [
        node(number, passed(speedup) if speedup else failed())
        for number, speedup in enumerate(speedups, start=1)
    ]

    result = chart(nodes, size)

    for mark in result.marks:
        assert size.left <= mark.x <= size.plot_right
        for y in (mark.y, mark.low_y, mark.high_y):
            assert size.top <= y <= size.height - size.bottom
    assert size.top <= result.baseline_y <= size.plot_bottom


@given(st.floats(0.05, 0.999), st.floats(1.001, 1e4))
def test_ratio_ticks_are_few_rise_and_include_the_baseline(low, high):
    ticks = ratio_ticks(low, high)

    assert 1.0 in ticks
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= 9
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)
    assert all(math.isfinite(tick) for tick in ticks)


@given(st.integers(1, 100_000))
def test_step_ticks_are_few_and_within_the_run(steps):
    ticks = step_ticks(steps)

    assert ticks[0] == 1
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= 8
    assert ticks[-1] <= steps
