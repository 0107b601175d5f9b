"""Steps in flight in the tree: a virtual loss that can be undone."""

import pytest

from adaexplore.core.node import ROOT_ID
from adaexplore.search import Tree

CORRECT = (True, True, 2.0, 0.0)


@pytest.fixture
def tree() -> Tree:
    tree = Tree()
    tree.add(1, ROOT_ID, "large", 1.0, CORRECT)
    tree.add(2, 1, "small", 0.5, CORRECT)
    return tree


def test_a_step_in_flight_counts_as_a_failed_visit_up_to_the_root(tree):
    tree.begin(2, "small")
    tree.begin(1, "large")
    # Node 1: (1.0 + 0.5 + 2 * 0.05) / 4; node 2: (0.5 + 0.05) / 2.
    assert (tree[1].visits, tree[1].mean) == (4, pytest.approx(0.4))
    assert (tree[2].visits, tree[2].mean) == (2, pytest.approx(0.275))
    assert (tree[ROOT_ID].visits, tree[ROOT_ID].pending) == (4, 2)
    assert tree[1].value(alpha=1.0) == 1.0
    assert (tree[1].width, tree[1].small_children, tree[1].children) == (2, 1, [2])
    assert (tree[2].width, tree[2].small_children, tree[2].children) == (1, 1, [])


def test_a_step_that_never_began_cannot_end(tree):
    with pytest.raises(ValueError, match="node 1"):
        tree.end(1, "small")
    tree.begin(1, "small")
    tree.end(1, "small")
    with pytest.raises(ValueError, match="node 1"):
        tree.end(1, "small")


def test_an_unjudged_step_counts_nowhere(tree):
    tree.add_unjudged(3, 2, "small")
    assert tree[2].visits == 1
    assert tree[2].children == []
    assert tree.path(3) == [ROOT_ID, 1, 2, 3]
    with pytest.raises(ValueError, match="already"):
        tree.add_unjudged(3, 2, "small")
