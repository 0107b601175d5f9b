"""Allocation of steps to the problems of a campaign."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.search.allocation import Arm, choose_problem

arms = st.lists(
    st.builds(
        lambda gains, headroom, under_way: Arm(gains, [1.0] * len(gains), headroom, under_way),
        st.lists(st.floats(0.0, 3.0), max_size=12),
        st.none() | st.floats(0.0, 5.0),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=6,
)


def arm(gains, headroom=1.0, cost=1.0, under_way=0):
    return Arm(gains, [cost] * len(gains), headroom, under_way)


@given(arms, st.sampled_from(["uniform", "headroom"]), st.integers(0, 8))
def test_the_choice_is_a_valid_index(several, allocation, first):
    assert 0 <= choose_problem(several, allocation, first) < len(several)


@given(arms)
def test_uniform_chooses_the_problem_with_the_fewest_steps(several):
    chosen = choose_problem(several, "uniform", 8)
    assert several[chosen].begun == min(each.begun for each in several)


@given(arms, st.integers(1, 8))
def test_every_problem_gets_the_first_steps(several, first):
    chosen = choose_problem(several, "headroom", first)
    if any(each.begun < first for each in several):
        assert several[chosen].begun == min(each.begun for each in several)


STEEP, FLAT = [0.1] * 8, [0.0] * 8


def test_steps_go_to_the_problem_that_gains():
    assert choose_problem([arm(FLAT), arm(STEEP)], "headroom", 4) == 1
    assert choose_problem([arm(STEEP), arm(FLAT)], "headroom", 4) == 0


def test_steps_go_to_the_problem_with_headroom():
    assert choose_problem([arm(STEEP, 0.05), arm(STEEP, 2.0)], "headroom", 4) == 1


def test_recent_gains_count_more_than_old_ones():
    early, late = [0.8, *[0.0] * 40], [*[0.0] * 40, 0.8]
    assert choose_problem([arm(early), arm(late)], "headroom", 4) == 1


def test_cheap_gains_count_more_than_expensive_ones():
    assert choose_problem([arm(STEEP, cost=9.0), arm(STEEP, cost=1.0)], "headroom", 4) == 1


def test_steps_in_flight_count_as_steps_without_a_gain():
    assert choose_problem([arm(STEEP, under_way=4), arm(STEEP)], "headroom", 4) == 1


def test_no_problem_falls_far_behind_because_gains_may_come_late():
    ahead, behind = arm([0.1] * 40), arm([0.0] * 8)
    assert choose_problem([ahead, behind], "headroom", 4) == 1


def test_gains_decide_if_no_headroom_is_known():
    assert choose_problem([arm(FLAT, None), arm(STEEP, None)], "headroom", 4) == 1


def test_an_unknown_headroom_counts_as_the_mean_of_the_others():
    assert choose_problem([arm(STEEP, None), arm(STEEP, 0.01), arm(STEEP, 4.0)], "headroom", 4) == 2


@pytest.mark.parametrize("allocation", ["uniform", "headroom"])
def test_problems_without_headroom_are_valid(allocation):
    assert choose_problem([arm(FLAT, 0.0), arm(FLAT, 0.0)], allocation, 1) in (0, 1)
