"""`islands`: populations that evolve apart and exchange their best."""

import pytest
from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import Selection

SMALL = Config(p_large=0.0)


def members(play: Play) -> set[int]:
    """Return the kernels of the island whose turn it is; needs `exploration=1`."""
    return set(play.places(100))


def test_steps_visit_the_islands_in_turn():
    play = Play("islands", SMALL, islands=3)
    parents = play.grow(1.0, 2.0, 3.0, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert parents == [ROOT_ID] * 3 + [1, 2, 3, 1, 2]


def test_a_step_in_flight_has_taken_its_turn():
    play = Play("islands", SMALL, islands=3)
    play.grow(1.0, 2.0, 3.0)
    play.tree.begin(1, "small")
    assert play.select().node_id == 2


def test_an_island_without_a_correct_kernel_starts_from_nothing():
    play = Play("islands", Config(p_large=0.0), islands=2)
    play.grow(None, 1.0)
    assert play.select() == Selection(ROOT_ID, "large", ())


def test_the_best_of_each_island_go_to_both_neighbours_and_no_further():
    play = Play("islands", SMALL, islands=5, interval=10, exploration=1.0)
    for island in range(5):
        play.add(2.0, cell=(island,))
    assert members(play) == {1}
    for founder in range(1, 6):
        play.add(1.0, founder, cell=(founder, 1))
    assert members(play) == {1, 6, 2, 5}  # island 0: its own two, and the best of 1 and of 4
    for _ in range(2):
        play.add(None)
    assert members(play) == {3, 8, 2, 4}  # island 2


def test_islands_exchange_after_every_interval_alone():
    play = Play("islands", SMALL, islands=2, interval=4, exploration=1.0)
    play.add(1.0, cell=(1,))
    play.add(2.0, cell=(2,))
    play.add(None)
    assert members(play) == {2}
    play.add(None)
    assert members(play) == {1, 2}
    play.add(3.0, 1, cell=(3,))
    play.add(None)
    play.add(None)
    assert members(play) == {1, 2}
    play.add(None)
    play.add(None)
    assert members(play) == {1, 2, 5}


def test_a_migrant_takes_a_cell_only_from_a_slower_kernel():
    play = Play("islands", SMALL, islands=2, interval=2, exploration=1.0)
    play.add(1.0)
    play.add(3.0)
    assert members(play) == {2}
    play.add(None)
    assert members(play) == {2}


@pytest.mark.parametrize(("share", "arrived"), [(0.1, {1}), (0.5, {1, 3})])
def test_the_share_of_an_island_that_migrates(share, arrived):
    play = Play("islands", SMALL, islands=2, interval=8, migration=share, exploration=1.0)
    for speedup in (4.0, 3.0, 2.0, 1.0):  # island 0, at its turns
        play.add(speedup, cell=(len(play.tree),))
        play.add(None)
    play.add(None)
    assert members(play) == arrived


def test_a_cell_keeps_its_best_kernel_and_the_older_of_equals():
    play = Play("islands", SMALL, islands=1, exploration=1.0)
    play.add(2.0)
    play.add(1.0, 1)
    play.add(2.0, 1)
    play.add(1.0, 1, cell=(1, 1))
    assert members(play) == {1, 4}
    play.add(2.5, 1)
    assert members(play) == {5, 4}


def test_a_late_child_belongs_to_the_island_of_its_parent():
    play = Play("islands", SMALL, islands=2, exploration=1.0)
    play.add(1.0)
    play.add(1.0)
    play.add(1.0, 2, cell=(1, 1))  # at the turn of island 0
    assert members(play) == {2, 3}
    play.add(None)
    assert members(play) == {1}


def three(**parameters: float) -> Play:
    """Return one island with kernels of speed 1, 3 and 4."""
    play = Play("islands", SMALL, islands=1, **parameters)
    for speedup in (1.0, 3.0, 4.0):
        play.add(speedup, cell=(len(play.tree),))
    return play


def test_exploration_draws_any_member_alike():
    places = three(exploration=1.0).places(600)
    assert all(150 < places[kernel] < 250 for kernel in (1, 2, 3))  # mean 200, deviation 12


def test_exploitation_draws_among_the_best_of_the_search_alike():
    places = three(exploration=0.0, exploitation=1.0, archive=2).places(400)
    assert set(places) == {2, 3}
    assert 150 < places[2] < 250  # mean 200, standard deviation 10


def test_an_island_without_elites_exploits_all_its_members():
    play = Play("islands", SMALL, islands=2, exploration=0.0, exploitation=1.0, archive=1)
    play.add(1.0)
    play.add(9.0)
    assert play.places(20).keys() == {1}


def test_the_rest_is_drawn_in_proportion_to_speed():
    places = three(exploration=0.0, exploitation=0.0).places(800)
    # Shares of 1/8, 3/8 and 4/8 of 800: 100, 300, 400; standard deviations 9, 14, 14.
    assert 60 < places[1] < 140
    assert 240 < places[2] < 360
    assert 340 < places[3] < 460


def test_a_large_step_is_shown_its_parent_the_best_and_others_of_the_island():
    play = Play("islands", Config(p_large=1.0, pool_size=3), islands=2, exploration=1.0)
    for speedup in (1.0, 4.0, 2.0, 3.0):
        play.add(speedup, cell=(len(play.tree),))
        play.add(9.0, cell=(9,))
    shown = {step.node_id: set() for step in play.selections(100)}
    assert shown.keys() == {1, 3, 5, 7}
    for step in play.selections(100):
        assert step.step_kind == "large"
        assert len(step.pool) == len(set(step.pool)) == 3
        assert step.pool[0] == step.node_id
        assert step.node_id == 3 or step.pool[1] == 3
        shown[step.node_id].update(step.pool)
    assert all(pool == {1, 3, 5, 7} for pool in shown.values())
