"""`polca`: a priority queue without similar kernels."""

from collections import Counter

from policy_play import Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config

SMALL = Config(p_large=0.0)


def queue(*kernels: tuple[float | None, float], **parameters: float) -> Play:
    """Return a play with kernels from the root, each with a speed and a place on a line."""
    play = Play("polca", SMALL, **parameters)
    for speedup, place in kernels:
        play.add(speedup, vector=(place, 0.0))
    return play


def test_the_queue_is_expanded_once_it_has_as_many_kernels_as_candidates():
    kernels = [(1.0 + place, float(place)) for place in range(3)]
    assert queue(*kernels[:2], candidates=3).select().node_id == ROOT_ID
    assert queue(*kernels, candidates=3).select().node_id == 3


def test_the_best_candidates_are_visited_in_turn():
    play = queue((1.0, 0.1), (3.0, 0.3), (2.0, 0.2), candidates=2)
    assert play.grow(*[None] * 5) == [2, 3, 2, 3, 2]


def test_a_step_in_flight_is_a_child_already():
    play = queue((3.0, 0.3), (2.0, 0.2), candidates=2)
    play.tree.begin(1, "small")
    assert play.select().node_id == 2


def test_failures_come_after_every_correct_kernel():
    play = queue((None, 0.1), (1.0, 0.3), (0.5, 0.5), candidates=2)
    assert play.grow(None, None, None) == [2, 3, 2]
    play = queue((None, 0.1), (1.0, 0.3), candidates=2)
    assert play.grow(None, None) == [2, 1]


def test_the_faster_of_two_similar_kernels_is_kept():
    for kernels in ([(2.0, 0.0), (1.0, 0.01)], [(1.0, 0.01), (2.0, 0.0)]):
        play = queue(*kernels, (1.5, 0.5), candidates=2)
        faster = kernels.index((2.0, 0.0)) + 1
        assert play.grow(None, None, None) == [faster, 3, faster]


def test_kernels_further_apart_than_epsilon_are_both_kept():
    assert queue((2.0, 0.0), (1.0, 0.02), candidates=2).select().node_id == ROOT_ID
    assert queue((2.0, 0.0), (1.0, 0.03), candidates=2).select().node_id == 1
    assert queue((2.0, 0.0), (1.0, 0.03), candidates=2, epsilon=0.1).select().node_id == ROOT_ID


def test_a_kernel_replaces_every_slower_one_that_is_similar():
    apart = [(1.0, 0.0), (1.0, 0.03)]
    assert queue(*apart, (2.0, 0.5), candidates=3).select().node_id == 3
    assert queue(*apart, (2.0, 0.015), candidates=2).select().node_id == ROOT_ID


def test_a_full_queue_loses_its_last():
    kernels = [(1.0, 0.1), (3.0, 0.3), (2.0, 0.2)]
    assert queue(*kernels, candidates=3, memory=2).select().node_id == ROOT_ID
    assert queue(*kernels, candidates=2, memory=2).grow(None, None) == [2, 3]


def test_a_large_step_is_shown_the_correct_candidates_best_first():
    for pool_size, pool in ((5, (2, 3)), (1, (2,))):
        play = Play("polca", Config(p_large=1.0, pool_size=pool_size), candidates=3)
        for speedup, place in ((None, 0.1), (3.0, 0.3), (2.0, 0.2)):
            play.add(speedup, vector=(place, 0.0))
        assert {step.pool for step in play.selections(10)} == {pool}
        assert play.select().step_kind == "large"


def test_a_step_below_the_root_is_large_with_its_probability():
    play = Play("polca", Config(p_large=0.2), candidates=1)
    play.add(1.0)
    kinds = Counter(step.step_kind for step in play.selections(400))
    assert 40 < kinds["large"] < 120  # mean 80, standard deviation 8
