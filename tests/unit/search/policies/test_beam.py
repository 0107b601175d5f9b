"""`beam`: generations, of which the best are kept."""

from collections import Counter

from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config

SMALL = Config(p_large=0.0)


def test_the_best_two_of_a_generation_are_grown_evenly_the_better_first():
    play = Play("beam", SMALL, width=2, branch=2)
    parents = play.grow(1.0, 3.0, 2.0, 0.5, None, None, None, None)
    assert parents == [ROOT_ID] * 4 + [2, 3, 2, 3]


def test_parents_stay_in_the_beam_where_no_child_is_better():
    play = Play("beam", SMALL, width=2, branch=2)
    parents = play.grow(1.0, 3.0, 2.0, 0.5, None, 1.5, None, None, 0.1, 0.1)
    assert parents[-2:] == [2, 3]


def test_better_children_replace_their_parents():
    play = Play("beam", SMALL, width=2, branch=2)
    parents = play.grow(1.0, 3.0, 2.0, 0.5, 2.5, 1.0, 4.0, 1.0, None, None, None)
    assert parents[-3:] == [7, 2, 7]  # 4.0 and the parent with 3.0; its child has 2.5


def test_the_first_generation_goes_on_until_a_kernel_is_correct():
    play = Play("beam", SMALL, width=2, branch=2)
    assert play.grow(*[None] * 6, 1.0, None) == [ROOT_ID] * 7 + [7]


def test_width_and_branch_are_numbers_of_kernels_and_of_children():
    play = Play("beam", SMALL, width=1, branch=3)
    parents = play.grow(1.0, 2.0, 3.0, 1.0, 4.0, 5.0, None)
    assert parents == [ROOT_ID] * 3 + [3] * 3 + [6]


def test_a_step_in_flight_is_a_child_already():
    play = Play("beam", SMALL, width=2, branch=2)
    play.grow(1.0, 3.0, 2.0, 0.5)
    play.tree.begin(2, "small")
    assert play.select().node_id == 3


def test_a_step_below_the_root_is_large_with_its_probability():
    play = Play("beam", Config(p_large=0.2), width=1, branch=1)
    play.grow(1.0)
    kinds = Counter(step.step_kind for step in play.selections(400))
    assert 40 < kinds["large"] < 120  # mean 80, standard deviation 8
