"""The founding phase of the `archive` policy."""

import random
from collections import Counter, deque
from dataclasses import dataclass

import pytest

from adaexplore.core.config import Config
from adaexplore.core.node import ROOT_ID
from adaexplore.search import POLICIES, Tree

FOUNDERS = 8


@dataclass(frozen=True)
class FakeTraits:
    cell: tuple[int, ...] = (0, 0)
    vector: tuple[float, ...] = (1.0, 0.0)


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
