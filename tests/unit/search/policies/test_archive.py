"""`archive`: the founding phase, and then fast and diverse kernels, expanded where steps gain."""

import random
from collections import Counter, deque

import pytest
from policy_play import FakeTraits, Play

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import POLICIES, Tree

FOUNDERS = 8


def steps_from_root(parallel: int, steps: int = 40) -> list[bool]:
    """Return for each step if it grew from the root; the fifth kernel is the fastest."""
    policy, tree = POLICIES["archive"](Config()), Tree()
    in_flight, chosen = deque(), []
    for node_id in range(1, steps + 1):
        while len(in_flight) < parallel:
            selection = policy.select(tree, random.Random(len(chosen)))
            tree.begin(selection.node_id, selection.step_kind)
            in_flight.append(selection)
            chosen.append(selection.node_id)
        step = in_flight.popleft()
        tree.end(step.node_id, step.step_kind)
        speedup = 3.0 if node_id == 5 else 1.0
        tree.add(node_id, step.node_id, step.step_kind, speedup, (True, True, speedup, 0.0))
        policy.record(tree, node_id, FakeTraits())
    assert chosen[sum(node_id == ROOT_ID for node_id in chosen)] == 5
    return [node_id == ROOT_ID for node_id in chosen]


def test_the_older_of_equal_kernels_stays_the_elite_of_its_cell():
    policy = POLICIES["archive"](Config(founders=3, pool_size=3), top=1)
    tree = Tree()
    for node_id, (speedup, cell) in enumerate([(3.0, (1, 1)), (1.0, (0, 0)), (1.0, (0, 0))], 1):
        tree.add(node_id, ROOT_ID, "large", speedup, (True, True, speedup, 0.0))
        policy.record(tree, node_id, FakeTraits(cell))
    chosen = [policy.select(tree, random.Random(seed)) for seed in range(40)]
    assert {s.pool for s in chosen if s.step_kind == "large"} == {(1, 2)}


@pytest.mark.parametrize("parallel", [1, 2, 4, 8, 16])
def test_the_best_founder_is_expanded_not_the_first_to_arrive(parallel):
    founders = FOUNDERS + parallel - 1
    places = steps_from_root(parallel)
    assert all(places[:founders])
    assert not any(places[founders:])


def test_before_any_gain_both_kinds_of_step_are_as_likely():
    policy, tree = POLICIES["archive"](Config(founders=1)), Tree()
    tree.add(1, ROOT_ID, "large", 1.0, (True, True, 1.0, 0.0))
    policy.record(tree, 1, FakeTraits())
    kinds = Counter(policy.select(tree, random.Random(seed)).step_kind for seed in range(400))
    assert 150 < kinds["large"] < 250  # mean 200, standard deviation 10


@pytest.mark.parametrize(("kind", "low", "high"), [("small", 40, 120), ("large", 280, 360)])
def test_the_kind_of_step_that_gained_is_taken_more_often(kind, low, high):
    policy, tree = POLICIES["archive"](Config(founders=1)), Tree()
    for node_id, parent, step, speedup in ((1, ROOT_ID, "large", 1.0), (2, 1, kind, 3.0)):
        tree.add(node_id, parent, step, speedup, (True, True, speedup, 0.0))
        policy.record(tree, node_id, FakeTraits())
    # Mean gains: (ln 3 + 0.2) / 3 = 0.433 and 0.2 / 2 = 0.1, so 81 % and 19 % of 400.
    kinds = Counter(policy.select(tree, random.Random(seed)).step_kind for seed in range(400))
    assert low < kinds["large"] < high


def test_a_kernel_whose_steps_gain_nothing_gives_way_to_the_next():
    play = Play("archive", Config(founders=2), reach=10.0)
    play.add(2.0)
    play.add(1.9)
    assert play.select().node_id == 1
    for _ in range(10):
        play.add(None, 1)
    assert play.select().node_id == 2


def test_without_reach_the_fastest_kernel_is_expanded_whatever_its_steps_gained():
    play = Play("archive", Config(founders=2), reach=0.0)
    play.add(2.0)
    play.add(1.9)
    for _ in range(10):
        play.add(None, 1)
    assert play.select().node_id == 1


def test_a_gain_speaks_for_the_kernel_that_it_started_from():
    # Of 1 and 2, equally fast, a step from 2 gained ln 1.25 = 0.223. The mean gain is 0.423 / 3 =
    # 0.141. Expected of 1: 0.141, of 2: (0.223 + 0.282) / 3 = 0.168, of the child: 0.141.
    play = Play("archive", Config(founders=2), reach=50.0)
    play.add(2.0)
    play.add(2.0)
    play.add(2.5, 2)
    assert play.select().node_id == 2
    play.add(1.0, 2)  # a loss is no gain: (0.223 + 2 * 0.106) / 4 = 0.109, and 0.106 of the child
    play.add(2.5, 1)  # as much from 1, in one step: it has the better rate now
    assert play.select().node_id == 1


def test_slower_kernels_are_expanded_only_as_the_best_of_their_cell():
    for top, expanded in ((1, 2), (2, 3)):
        play = Play("archive", Config(founders=3), top=top, reach=1000.0)
        play.add(3.0, cell=(1,))
        play.add(1.0, cell=(2,))
        play.add(2.0, cell=(1,))
        for _ in range(30):
            play.add(None, 1)
        assert play.select().node_id == expanded


def test_a_faster_kernel_takes_over_its_cell():
    play = Play("archive", Config(founders=3), top=1, reach=1000.0)
    play.add(3.0, cell=(1,))
    play.add(1.0, cell=(2,))
    play.add(1.5, cell=(2,))
    for _ in range(30):
        play.add(None, 1)
    assert play.select().node_id == 3


def test_a_large_step_is_shown_its_kernel_the_fastest_and_others_of_other_cells():
    play = Play("archive", Config(founders=4, pool_size=3), top=1, reach=1000.0)
    for speedup, cell in ((3.0, 1), (1.0, 2), (0.5, 3), (0.4, 3)):
        play.add(speedup, cell=(cell,))
    for _ in range(30):
        play.add(None, 1)
    assert {s.pool for s in play.selections(60) if s.step_kind == "large"} == {(2, 1, 3)}


def test_variants_of_the_tuner_do_not_change_the_kind_of_step():
    play = Play("archive", Config(founders=1))
    play.add(1.0)
    play.add(9.0, 1, "tune")
    kinds = Counter(step.step_kind for step in play.selections(400))
    assert 150 < kinds["large"] < 250  # as before any gain


@pytest.mark.parametrize(("kind", "low", "high"), [("small", 20, 60), ("large", 340, 380)])
def test_each_kind_of_step_has_a_tenth_at_least(kind, low, high):
    play = Play("archive", Config(founders=1))
    play.add(1.0)
    for node in range(1, 9):
        play.add(1000.0**node, node, kind)
    kinds = Counter(step.step_kind for step in play.selections(400))
    assert low < kinds["large"] < high  # mean 40 or 360, standard deviation 6


def test_failures_alone_are_expanded_never():
    play = Play("archive", Config(founders=1))
    assert play.grow(None, None, None, 1.0, None) == [ROOT_ID] * 4 + [4]
