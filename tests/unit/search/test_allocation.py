"""Who gets the next steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.search.allocation import Arm, choose_problem

standings = st.lists(
    st.builds(
        lambda gains, headroom, under_way: Arm(gains, [1.0] * len(gains), headroom, under_way),
        st.lists(st.floats(0.0, 3.0), max_size=12),
        st.none() | st.floats(0.0, 5.0),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=6,
)


def stood(gains, headroom=1.0, cost=1.0, under_way=0):
    return Arm(gains, [cost] * len(gains), headroom, under_way)


@given(standings, st.sampled_from(["uniform", "headroom"]), st.integers(0, 8))
def test_it_is_always_one_of_them(some, allocation, first):
    assert 0 <= choose_problem(some, allocation, first) < len(some)


@given(standings)
def test_uniform_is_whoever_had_the_fewest(some):
    chosen = choose_problem(some, "uniform", 8)
    assert some[chosen].begun == min(one.begun for one in some)


@given(standings, st.integers(1, 8))
def test_nobody_is_left_without_the_first_steps(some, first):
    chosen = choose_problem(some, "headroom", first)
    if any(one.begun < first for one in some):
        assert some[chosen].begun == min(one.begun for one in some)


STEEP, FLAT = [0.1] * 8, [0.0] * 8


def test_steps_go_where_they_gain():
    assert choose_problem([stood(FLAT), stood(STEEP)], "headroom", 4) == 1
    assert choose_problem([stood(STEEP), stood(FLAT)], "headroom", 4) == 0


def test_steps_go_where_something_is_left_to_gain():
    assert choose_problem([stood(STEEP, 0.05), stood(STEEP, 2.0)], "headroom", 4) == 1


def test_recent_gains_count_more_than_old_ones():
    early, late = [0.8, *[0.0] * 40], [*[0.0] * 40, 0.8]
    assert choose_problem([stood(early), stood(late)], "headroom", 4) == 1


def test_cheap_gains_count_more_than_dear_ones():
    assert choose_problem([stood(STEEP, cost=9.0), stood(STEEP, cost=1.0)], "headroom", 4) == 1


def test_steps_under_way_count_as_if_nothing_came_of_them():
    assert choose_problem([stood(STEEP, under_way=4), stood(STEEP)], "headroom", 4) == 1


def test_gains_may_come_late_so_nobody_falls_far_behind():
    ahead, behind = stood([0.1] * 40), stood([0.0] * 8)
    assert choose_problem([ahead, behind], "headroom", 4) == 1


def test_where_no_headroom_is_known_gains_decide():
    assert choose_problem([stood(FLAT, None), stood(STEEP, None)], "headroom", 4) == 1


def test_an_unknown_headroom_is_taken_for_the_mean_of_the_others():
    assert (
        choose_problem([stood(STEEP, None), stood(STEEP, 0.01), stood(STEEP, 4.0)], "headroom", 4)
        == 2
    )


@pytest.mark.parametrize("allocation", ["uniform", "headroom"])
def test_all_at_the_roofline_is_no_trouble(allocation):
    assert choose_problem([stood(FLAT, 0.0), stood(FLAT, 0.0)], allocation, 1) in (0, 1)
