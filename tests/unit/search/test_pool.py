import math
import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_trees import Step, ancestors, grow, steps, subtree

from adaexplore.core.node import ROOT_ID
from adaexplore.core.settings.config import Config
from adaexplore.search import Tree, large_pool, small_window
from adaexplore.search.pool import diverse_pool, softmax_choice, truncated_geometric

WRONG = (True, False, 0.0, 0.0)


def correct(speedup: float) -> tuple[bool, bool, float, float]:
    return (True, True, speedup, 0.0)


def pool(tree: Tree, node_id: int, seed: int = 0, **settings: float) -> list[int]:
    return large_pool(tree, node_id, Config.model_validate(settings), random.Random(seed))


@pytest.fixture
def tree() -> Tree:
    """s = small edge, L = large edge.

    root
    ├─L 1 1.0x
    │   ├─s 2 1.5x
    │   └─s 3 wrong
    │       └─L 4 wrong
    │           └─L 5 2.0x
    │               └─s 6 0.5x
    ├─L 7 3.0x
    └─L 8 wrong
    """
    tree = Tree()
    tree.add(1, ROOT_ID, "large", 0.5, correct(1.0))
    tree.add(2, 1, "small", 0.6, correct(1.5))
    tree.add(3, 1, "small", 0.05, WRONG)
    tree.add(4, 3, "large", 0.05, WRONG)
    tree.add(5, 4, "large", 0.7, correct(2.0))
    tree.add(6, 5, "small", 0.4, correct(0.5))
    tree.add(7, ROOT_ID, "large", 0.9, correct(3.0))
    tree.add(8, ROOT_ID, "large", 0.05, WRONG)
    return tree


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [
        (ROOT_ID, []),  # no ancestor
        (1, [2]),  # 2 is not on the path, but in 1's component and faster
        (3, [2]),
        (4, [2]),  # no correct kernel in 4's component
        (6, [2, 5]),  # 5 beats 6 in their component
        (8, []),
    ],
)
def test_the_pool_without_extras_matches_a_hand_computation(tree, node_id, expected):
    assert pool(tree, node_id) == expected


def test_a_full_pool_is_a_sample_in_path_order():
    tree = Tree()
    for node_id in range(1, 9):  # a chain of large steps
        tree.add(node_id, node_id - 1, "large", 0.5, correct(1.0))
    seen: Counter[int] = Counter()
    for seed in range(400):
        members = pool(tree, 8, seed, pool_size=3, extra_max=3)
        assert len(members) == 3
        assert members == sorted(members)
        seen.update(members)
    # Each of 8 is in with 3/8: of 400, mean 150, standard deviation 9.7; 50 is five of them.
    assert all(abs(seen[node_id] - 150) <= 50 for node_id in range(1, 9))


def test_extras_come_from_components_off_the_path(tree):
    seen = {tuple(pool(tree, 6, seed, extra_max=3)) for seed in range(50)}
    assert seen == {(2, 5), (2, 5, 7)}  # 7 is the only other component with a correct kernel
    at_root = {tuple(pool(tree, ROOT_ID, seed, extra_max=3)) for seed in range(300)}
    assert {frozenset(members) for members in at_root} == {
        frozenset(ids) for ids in [(), (2,), (5,), (7,), (2, 5), (2, 7), (5, 7), (2, 5, 7)]
    }


def test_extras_never_exceed_the_pool_size(tree):
    assert {len(pool(tree, 6, seed, pool_size=2, extra_max=3)) for seed in range(50)} == {2}


def test_an_extreme_speedup_neither_overflows_nor_hides_the_rest(tree):
    tree.add(9, ROOT_ID, "large", 1.6, correct(1e6))
    picks = [pool(tree, 6, seed, extra_max=2) for seed in range(50)]
    assert [2, 5, 9, 7] in picks  # exp(1e6) drawn first, then the other kernel
    assert [2, 5, 7] not in picks


def test_the_window_matches_a_hand_computation(tree):
    assert small_window(tree, 2, Config()) == [1, 2]  # 3 is a sibling
    assert small_window(tree, 6, Config()) == [5, 6]  # the large step 5 cuts the path
    assert small_window(tree, 7, Config()) == [7]


def test_the_window_keeps_the_last_kernels():
    tree = Tree()
    tree.add(1, ROOT_ID, "large", 0.5, correct(1.0))
    for node_id in range(2, 9):
        tree.add(node_id, node_id - 1, "small", 0.5, correct(1.0))
    assert small_window(tree, 8, Config()) == [4, 5, 6, 7, 8]
    assert small_window(tree, 8, Config(window=1)) == [8]


@pytest.mark.parametrize(("p", "limit"), [(0.5, 3), (0.9, 2), (0.1, 5), (0.5, 1)])
def test_the_truncated_geometric_has_its_distribution(p, limit):
    rng = random.Random(0)
    draws = Counter(truncated_geometric(p, limit, rng) for _ in range(20_000))
    assert set(draws) <= set(range(limit + 1))
    norm = sum((1 - p) ** k for k in range(limit + 1))
    for k in range(limit + 1):
        # At most 0.0036 is one standard deviation of a share of 20,000 draws.
        assert draws[k] / 20_000 == pytest.approx((1 - p) ** k / norm, abs=0.015)


def test_the_truncated_geometric_matches_a_hand_computation():
    # p = 0.5, limit 2: weights 1, 1/2, 1/4 -> 4/7, 2/7, 1/7
    rng = random.Random(1)
    draws = Counter(truncated_geometric(0.5, 2, rng) for _ in range(20_000))
    shares = [draws[k] / 20_000 for k in range(3)]
    assert shares == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=0.015)
    assert truncated_geometric(0.5, 0, rng) == 0


def test_softmax_choice_has_its_distribution():
    # e^1 : e^2 = 1 : 2.71828 -> 0.26894, 0.73106
    rng = random.Random(2)
    second = sum(softmax_choice([1.0, 2.0], rng) for _ in range(20_000)) / 20_000
    assert second == pytest.approx(math.e / (1 + math.e), abs=0.015)


@given(
    steps(),
    st.builds(Config, pool_size=st.integers(1, 4), extra_max=st.integers(0, 4)),
    st.data(),
)
def test_pool_rules_on_random_trees(sequence: list[Step], settings: Config, data: st.DataObject):
    node_id = data.draw(st.integers(ROOT_ID, len(sequence)))
    seed = data.draw(st.integers(0, 1000))
    tree = grow(sequence)
    by_id = {step.id: step for step in sequence}

    def bests(larges: list[int]) -> set[int]:
        found = set()
        for large in larges:
            members = subtree(sequence, large, small_only=True)
            right = [by_id[m] for m in sorted(members) if by_id[m].rank[1]]
            if right:
                found.add(max(right, key=lambda step: step.rank).id)
        return found

    on_path = [a for a in ancestors(sequence, node_id) if by_id[a].kind == "large"]
    off_path = [step.id for step in sequence if step.kind == "large" and step.id not in on_path]
    members = large_pool(tree, node_id, settings, random.Random(seed))
    assert len(set(members)) == len(members) <= settings.pool_size
    own = [m for m in members if m in bests(on_path)]
    extra = [m for m in members if m not in own]
    assert len(own) == min(len(bests(on_path)), settings.pool_size)
    assert set(extra) <= bests(off_path)
    assert len(extra) <= settings.extra_max
    assert members == own + extra
    assert members == large_pool(tree, node_id, settings, random.Random(seed))


@given(steps(), st.integers(1, 6), st.data())
def test_window_rules_on_random_trees(sequence: list[Step], window: int, data: st.DataObject):
    if not sequence:
        return
    node_id = data.draw(st.integers(1, len(sequence)))
    kinds = {step.id: step.kind for step in sequence}
    chain = ancestors(sequence, node_id)
    large = next(a for a in chain if kinds[a] == "large")
    expected = chain[: chain.index(large) + 1][::-1][-window:]
    assert small_window(grow(sequence), node_id, Config(window=window)) == expected


@dataclass
class FakeTraits:
    vector: tuple[float, ...]
    cell: tuple[int, ...] = ()


class TestDiversePool:
    @pytest.fixture
    def kernels(self) -> Tree:
        tree = Tree()
        for node_id, speedup in enumerate([2.0, 1.9, 1.9, 0.2], 1):
            tree.add(node_id, ROOT_ID, "large", 0.5, correct(speedup))
        return tree

    def drawn(self, tree, pool, others, traits, size):
        return Counter(
            tuple(diverse_pool(tree, pool, others, traits, size, random.Random(seed)))
            for seed in range(300)
        )

    def test_the_most_different_of_equally_fast_kernels_is_chosen(self, kernels):
        traits = {1: FakeTraits((1.0, 0.0)), 2: FakeTraits((1.0, 0.0)), 3: FakeTraits((0.0, 1.0))}
        found = self.drawn(kernels, [1], [2, 3], traits, 2)
        assert found[1, 3] > 280  # odds of exp(4 * sqrt(2)) to 1

    def test_the_faster_of_similar_kernels_is_chosen(self, kernels):
        traits = dict.fromkeys(range(1, 5), FakeTraits((1.0, 0.0)))
        assert self.drawn(kernels, [1], [4, 2], traits, 2)[1, 2] > 280

    def test_novelty_is_the_distance_to_every_chosen_kernel(self, kernels):
        traits = {
            1: FakeTraits((1.0, 0.0)),
            2: FakeTraits((0.0, 1.0)),
            3: FakeTraits((0.0, 1.0)),
            4: FakeTraits((0.0, 1.0)),
        }
        found = self.drawn(kernels, [1, 2], [4, 3], traits, 9)
        assert set(found) <= {(1, 2, 3, 4), (1, 2, 4, 3)}
        assert found[1, 2, 3, 4] > 280

    def test_the_nearest_kernel_in_the_pool_says_how_new_one_is(self):
        # On a line: 1 at 0, 2 at 1, 3 at 0.9 and 4 at 0.5, all equally fast.
        tree = Tree()
        for node_id in range(1, 5):
            tree.add(node_id, ROOT_ID, "large", 0.5, correct(1.0))
        traits = {n: FakeTraits((8 * at, 0.0)) for n, at in enumerate([0.0, 1.0, 0.9, 0.5], 1)}
        assert self.drawn(tree, [1, 2], [3, 4], traits, 3)[1, 2, 4] > 280  # 0.5 away, 3 is 0.1
        found = self.drawn(tree, [1], [2, 3, 4], traits, 3)
        assert found[1, 2, 4] + found[1, 3, 4] > 280  # once 2 is in, 3 is near

    def test_the_size_bounds_the_pool(self, kernels):
        traits = dict.fromkeys(range(1, 5), FakeTraits((1.0, 0.0)))
        assert diverse_pool(kernels, [1, 2, 3], [4], traits, 2, random.Random(0)) == [1, 2]
