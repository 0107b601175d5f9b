"""What `archive` waits for before it chooses."""

import random
from collections import deque
from dataclasses import dataclass

import pytest

from adaexplore.core.config import Settings
from adaexplore.core.node import ROOT_ID
from adaexplore.search import POLICIES, Tree

FOUNDERS = 8


@dataclass(frozen=True)
class Look:
    cell: tuple[int, ...] = (0, 0)
    vector: tuple[float, ...] = (1.0, 0.0)


def from_nothing(parallel: int, steps: int = 40) -> list[bool]:
    """For each step in order, whether it grew from nothing; the fifth kernel is the fastest."""
    policy, tree = POLICIES["archive"](Settings()), Tree()
    under_way, chosen = deque(), []
    for node_id in range(1, steps + 1):
        while len(under_way) < parallel:
            selection = policy.select(tree, random.Random(len(chosen)))
            tree.begin(selection.node_id, selection.step_kind)
            under_way.append(selection)
            chosen.append(selection.node_id)
        step = under_way.popleft()
        tree.end(step.node_id, step.step_kind)
        speedup = 3.0 if node_id == 5 else 1.0
        tree.add(node_id, step.node_id, step.step_kind, speedup, (True, True, speedup, 0.0))
        policy.record(tree, node_id, Look())
    assert chosen[sum(node_id == ROOT_ID for node_id in chosen)] == 5
    return [node_id == ROOT_ID for node_id in chosen]


@pytest.mark.parametrize("parallel", [1, 2, 4, 8, 16])
def test_it_grows_the_best_founder_not_the_first_to_arrive(parallel):
    founders = FOUNDERS + parallel - 1
    places = from_nothing(parallel)
    assert all(places[:founders])
    assert not any(places[founders:])
