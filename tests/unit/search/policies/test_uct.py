import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_trees import Step, grow, steps, subtree

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import Selection, Tree
from adaexplore.search.policies.uct import Uct, child_score, expand_score

RANK = (True, True, 1.0, 0.0)


def select(tree: Tree, seed: int = 0, **settings: float) -> Selection:
    return Uct(Config.model_validate(settings)).select(tree, random.Random(seed))


def build(*rows: tuple[int, int, str, float]) -> Tree:
    tree = Tree()
    for node_id, parent_id, kind, reward in rows:
        tree.add(node_id, parent_id, kind, reward, RANK)
    return tree


def test_child_score_matches_a_hand_computation():
    # 0.5 + 0.3 * sqrt(ln 8 / 2) = 0.5 + 0.3 * sqrt(1.0397208) = 0.5 + 0.3 * 1.0196670
    assert child_score(0.5, visits=2, parent_visits=8, c=0.3) == pytest.approx(0.8059001)
    assert child_score(0.5, visits=0, parent_visits=8, c=0.3) == math.inf


def test_expand_score_matches_a_hand_computation():
    # 0.5 + 0.3 * 0.5 * sqrt(ln 8) / 3 = 0.5 + 0.05 * 1.4420269
    score = expand_score(0.5, children=3, visits=8, c=0.3, ratio=0.5)
    assert score == pytest.approx(0.5721013)
    # the same as c * ratio * sqrt(ln N / k^2)
    assert score == pytest.approx(0.5 + 0.3 * 0.5 * math.sqrt(math.log(8) / 9))
    assert expand_score(-math.inf, children=0, visits=1, c=0.3, ratio=1.0) == math.inf


def test_the_first_step_is_a_large_step_from_the_root():
    assert select(Tree()) == Selection(ROOT_ID, "large")


def test_equal_scores_descend():
    # One child: N = 1, ln 1 = 0, so both scores are Q; expanding is not strictly greater.
    tree = build((1, ROOT_ID, "large", 0.5))
    assert select(tree, p_large=0.0) == Selection(1, "small")


def test_the_root_expands_beside_a_weak_only_child_after_enough_visits():
    # root: N = 3, one child with n = 3. Q is equal on both sides (mean 0.5), so compare
    #   expand 0.3 * sqrt(ln 3) / 1       = 0.3 * 1.0481 = 0.3144
    #   child  0.3 * sqrt(ln 3 / 3)       = 0.3 * 0.6051 = 0.1815
    # and expanding wins.
    tree = build((1, ROOT_ID, "large", 0.5), (2, 1, "small", 0.5), (3, 2, "small", 0.5))
    assert select(tree) == Selection(ROOT_ID, "large")


def test_steps_in_flight_are_children_already():
    # As above with one large step in flight at the root: N = 4, k = 2.
    #   expand 0.3 * sqrt(ln 4) / 2 = 0.1766 (0.3532 if the step did not count)
    #   child  0.3 * sqrt(ln 4 / 3) = 0.2039: descend to 1
    # Node 1: N = 3, k = 1: expand 0.3144, child 2 (n = 2): 0.3 * sqrt(ln 3 / 2) = 0.2223: expand.
    tree = build((1, ROOT_ID, "large", 0.5), (2, 1, "small", 0.5), (3, 2, "small", 0.5))
    tree.begin(ROOT_ID, "large")
    assert select(tree, p_large=0.0) == Selection(1, "small")


def test_the_expand_ratio_holds_expansion_back():
    # As above with ratio 0.5: expand 0.1572 < child 0.1815. Node 1: N = 3, one child with n = 2:
    #   expand 0.15 * sqrt(ln 3) = 0.1572, child 0.3 * sqrt(ln 3 / 2) = 0.2223: descend to 2.
    # Node 2: N = 2, one child with n = 1: expand 0.15 * sqrt(ln 2) = 0.1249,
    #   child 0.3 * sqrt(ln 2) = 0.2498: descend to the leaf 3.
    tree = build((1, ROOT_ID, "large", 0.5), (2, 1, "small", 0.5), (3, 2, "small", 0.5))
    assert select(tree, expand_ratio=0.5, p_large=0.0) == Selection(3, "small")


def test_exploration_prefers_the_rare_child_and_exploitation_the_better_one():
    # root N = 4: child 1 (n = 3, mean (1.0 + 1.0 + 1.0) / 3 = 1.0), child 4 (n = 1, mean 0.9).
    # c = 0.3: child 1: 1.0 + 0.3 * sqrt(ln 4 / 3) = 1.0 + 0.3 * 0.6798 = 1.2039
    #          child 4: 0.9 + 0.3 * sqrt(ln 4)     = 0.9 + 0.3 * 1.1774 = 1.2532
    #          expand : 1.0 + 0.3 * sqrt(ln 4) / 2 = 1.0 + 0.1766       = 1.1766 -> descend to 4
    # c = 0: child 1 wins with 1.0, expand 1.0 is not greater; node 1 has children 2 and 3, both
    #        1.0: the older.
    tree = build(
        (1, ROOT_ID, "large", 1.0),
        (2, 1, "small", 1.0),
        (3, 1, "small", 1.0),
        (4, ROOT_ID, "large", 0.9),
    )
    assert select(tree, p_large=0.0) == Selection(4, "small")
    assert select(tree, c=0.0, p_large=0.0) == Selection(2, "small")


def test_alpha_weighs_the_maximum_against_the_mean():
    # child 1: rewards 0.0, 1.0 -> mean 0.5, max 1.0; child 3: 0.6, 0.6 -> mean 0.6, max 0.6.
    # c = 0 leaves Q alone.
    tree = build(
        (1, ROOT_ID, "large", 0.0),
        (2, 1, "small", 1.0),
        (3, ROOT_ID, "large", 0.6),
        (4, 3, "small", 0.6),
    )
    assert select(tree, c=0.0, alpha=0.0).node_id == 4
    assert select(tree, c=0.0, alpha=1.0).node_id == 2


def test_a_node_at_the_small_limit_takes_a_large_step():
    # Five poor large steps keep the root from expanding, a wide ratio makes node 1 expand:
    # root: N = 8, k = 6: expand 2 + 0.9 * sqrt(ln 8) / 6 = 2 + 0.9 * 1.4420 / 6 = 2.2163,
    #       child 1 (n = 3): 2 + 0.3 * sqrt(ln 8 / 3)     = 2 + 0.3 * 0.8326     = 2.2498: descend
    # node 1: N = 3, k = 2: expand 2 + 0.9 * 1.0481 / 2 = 2.4717, child 2: 2 + 0.3 * 1.0481 = 2.3144
    tree = build(
        (1, ROOT_ID, "large", 2.0),
        (2, 1, "small", 2.0),
        (3, 1, "small", 2.0),
        *((node, ROOT_ID, "large", 0.0) for node in range(4, 9)),
    )
    assert select(tree, expand_ratio=3.0, p_large=0.0) == Selection(1, "large")
    assert select(tree, expand_ratio=3.0, p_large=0.0, small_limit=3) == Selection(1, "small")


@pytest.mark.parametrize("p_large", [0.0, 0.2, 1.0])
def test_a_large_step_is_drawn_with_its_probability(p_large):
    tree = build((1, ROOT_ID, "large", 0.5))
    kinds = Counter(select(tree, seed, p_large=p_large).step_kind for seed in range(2000))
    # 2000 draws at 0.2: mean 400, standard deviation 18; 90 is five of them.
    assert abs(kinds["large"] - 2000 * p_large) <= 90 * (0 < p_large < 1)


def oracle(sequence: list[Step], settings: Config) -> int:
    """Apply the selection rule to the list of steps alone."""

    def rewards(node: int) -> list[float]:
        below = subtree(sequence, node)
        return [step.reward for step in sequence if step.id in below]

    def q(node: int) -> float:
        values = rewards(node)
        mean = sum(values) / len(values)
        return settings.alpha * max(values) + (1 - settings.alpha) * mean

    node = ROOT_ID
    while children := [step.id for step in sequence if step.parent_id == node]:
        log_n = math.log(len(rewards(node)))
        scores = {
            child: q(child) + settings.c * math.sqrt(log_n / len(rewards(child)))
            for child in children
        }
        best = max(scores.values())
        expand = max(q(child) for child in children)
        expand += settings.c * settings.expand_ratio * math.sqrt(log_n) / len(children)
        if expand > best:
            return node
        node = next(child for child in children if scores[child] == best)
    return node


search_settings = st.builds(
    Config,
    c=st.sampled_from([0.0, 0.25, 0.3, 2.0]),
    expand_ratio=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
    small_limit=st.integers(0, 3),
    p_large=st.sampled_from([0.0, 0.2, 1.0]),
)


@given(steps(), search_settings, st.integers(0, 2**32))
def test_selection_agrees_with_the_oracle(sequence: list[Step], settings: Config, seed: int):
    selection = Uct(settings).select(grow(sequence), random.Random(seed))
    assert selection.node_id == oracle(sequence, settings)
    smalls = [s for s in sequence if s.parent_id == selection.node_id and s.kind == "small"]
    if selection.node_id == ROOT_ID or len(smalls) >= settings.small_limit:
        assert selection.step_kind == "large"
    elif settings.p_large in (0.0, 1.0):
        assert selection.step_kind == ("large" if settings.p_large else "small")
    repeated = Uct(settings).select(grow(sequence), random.Random(seed))
    assert repeated == selection
