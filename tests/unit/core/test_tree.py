import math

import pytest
from hypothesis import given
from random_trees import Step, grow, steps, subtree

from adaexplore.core.node import ROOT_ID
from adaexplore.search import Tree

WRONG = (True, False, 0.0, 0.0)


def correct(speedup: float) -> tuple[bool, bool, float, float]:
    return (True, True, speedup, 0.0)


@pytest.fixture
def tree() -> Tree:
    """Rewards in brackets, s = small edge, L = large edge.

    root
    ├─L 1 [0.50] 1.0x
    │   ├─s 2 [0.05] wrong
    │   │   └─s 4 [0.75] 1.5x
    │   └─L 5 [1.00] 3.0x
    │       └─s 6 [0.00] not compiled
    └─L 3 [0.05] wrong
    """
    tree = Tree()
    tree.add(1, ROOT_ID, "large", 0.50, correct(1.0))
    tree.add(2, 1, "small", 0.05, WRONG)
    tree.add(3, ROOT_ID, "large", 0.05, WRONG)
    tree.add(4, 2, "small", 0.75, correct(1.5))
    tree.add(5, 1, "large", 1.00, correct(3.0))
    tree.add(6, 5, "small", 0.00, (False, False, 0.0, 0.0))
    return tree


@pytest.mark.parametrize(
    ("node_id", "visits", "total", "best"),
    [
        (ROOT_ID, 6, 2.35, 1.00),  # everything
        (1, 5, 2.30, 1.00),  # 0.50 + 0.05 + 0.75 + 1.00 + 0.00
        (2, 2, 0.80, 0.75),  # 0.05 + 0.75
        (3, 1, 0.05, 0.05),
        (4, 1, 0.75, 0.75),
        (5, 2, 1.00, 1.00),  # 1.00 + 0.00
        (6, 1, 0.00, 0.00),
    ],
)
def test_statistics_match_a_hand_computation(tree, node_id, visits, total, best):
    vertex = tree[node_id]
    assert vertex.visits == visits
    assert vertex.mean == pytest.approx(total / visits)
    assert vertex.max == best
    # Q = alpha * max + (1 - alpha) * mean
    assert vertex.value(0.0) == pytest.approx(total / visits)
    assert vertex.value(1.0) == best
    assert vertex.value(0.25) == pytest.approx(0.25 * best + 0.75 * total / visits)


def test_the_shape_matches_a_hand_computation(tree):
    assert len(tree) == 6
    assert tree[ROOT_ID].children == [1, 3]
    assert tree[1].children == [2, 5]
    assert tree[1].small_children == 1
    assert tree[3].children == []
    assert tree.path(6) == [ROOT_ID, 1, 5, 6]
    assert tree.path(ROOT_ID) == [ROOT_ID]
    assert 6 in tree
    assert 7 not in tree


def test_components_match_a_hand_computation(tree):
    assert {node: tree[node].component for node in range(1, 7)} == {
        1: 1,
        2: 1,
        3: 3,
        4: 1,
        5: 5,
        6: 5,
    }
    # 1's component: 1.5x beats 1.0x, and the 3.0x of node 5 belongs to another component;
    # 3's component has no correct kernel.
    assert tree.best_kernels == {1: 4, 5: 5}
    assert tree.components_on_path(4) == [1]
    assert tree.components_on_path(6) == [1, 5]
    assert tree.components_on_path(ROOT_ID) == []


def test_the_older_of_equally_fast_kernels_represents_its_component(tree):
    tree.add(7, 5, "small", 1.0, correct(3.0))
    assert tree.best_kernels[5] == 5


def test_a_shorter_estimate_is_a_higher_speed():
    tree = Tree()
    for node_id, estimated_us in enumerate([2.0, 4.0], 1):
        tree.add(node_id, ROOT_ID, "large", 0.5, (True, True, 0.0, -estimated_us))
    assert tree[1].log_speed == pytest.approx(-math.log(2.0))
    assert tree[2].log_speed == pytest.approx(-math.log(4.0))


@pytest.mark.parametrize("rank", [WRONG, (True, True, 0.0, -math.inf), (True, False, 0.0, -2.0)])
def test_a_kernel_that_was_neither_measured_nor_estimated_has_no_speed(rank):
    tree = Tree()
    tree.add(1, ROOT_ID, "large", 0.5, rank)
    assert tree[1].log_speed == -math.inf


def test_an_empty_tree_has_a_root_without_reward():
    root = Tree()[ROOT_ID]
    assert (root.visits, root.mean, root.max, root.children) == (0, 0.0, 0.0, [])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ((1, ROOT_ID, "large", 0.5), "already in the tree"),
        ((ROOT_ID, 1, "large", 0.5), "already in the tree"),
        ((7, 99, "large", 0.5), "parent 99"),
        ((7, ROOT_ID, "small", 0.5), "small step under the root"),
        ((7, 1, "large", -0.1), "0 or more"),
        ((7, 1, "large", math.nan), "0 or more"),
    ],
)
def test_an_invalid_step_is_refused_and_leaves_the_tree_unchanged(tree, step, message):
    with pytest.raises(ValueError, match=message):
        tree.add(*step, WRONG)
    assert len(tree) == 6
    assert tree[ROOT_ID].visits == 6


@given(steps())
def test_statistics_agree_with_brute_force(sequence: list[Step]):
    tree = grow(sequence)
    for node_id in range(len(sequence) + 1):
        rewards = [step.reward for step in sequence if step.id in subtree(sequence, node_id)]
        vertex = tree[node_id]
        assert vertex.visits == len(rewards)
        assert vertex.mean == (sum(rewards) / len(rewards) if rewards else 0.0)
        assert vertex.max == max(rewards, default=0.0)
        assert vertex.children == [step.id for step in sequence if step.parent_id == node_id]


@given(steps())
def test_a_component_is_a_large_step_and_everything_small_edges_reach(sequence: list[Step]):
    tree = grow(sequence)
    for large in (step.id for step in sequence if step.kind == "large"):
        reached = subtree(sequence, large, small_only=True)
        assert {step.id for step in sequence if tree[step.id].component == large} == reached
        right = [step for step in sequence if step.id in reached and step.rank[1]]
        best = max(right, key=lambda step: step.rank, default=None)
        assert tree.best_kernels.get(large) == (best.id if best else None)


def test_a_repeat_is_a_visit_without_reward(tree):
    before = (tree[ROOT_ID].visits, tree[ROOT_ID].max, dict(tree.best_kernels))
    tree.add_repeat(7, 1, "small")
    visits, best, kernels = before
    assert (tree[ROOT_ID].visits, tree[ROOT_ID].max, tree.best_kernels) == (
        visits + 1,
        best,
        kernels,
    )
    assert (tree[7].correct, tree[7].total) == (False, 0.05)
    assert tree[1].small_children == 2
