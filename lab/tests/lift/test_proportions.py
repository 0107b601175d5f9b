import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore_lab.lift.proportions import (
    effective_tries,
    interval,
    paired_interval,
    share_of,
    sign_test,
    wilson,
)

COUNTS = st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
PAIRS = st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=30)


def table(both, only_first, only_second, neither):
    """A try at each task, by which of the two arms were right."""
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return [(x, 1) for x in first], [(x, 1) for x in second]


@pytest.mark.parametrize(
    ("right", "tries", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_as_newcombe_1998_tabulates_it(right, tries, low, high):
    assert wilson(right / tries, tries) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((36, 14, 0, 0), 0.1528, 0.4167),
        ((53, 1, 0, 0), -0.0496, 0.0977),
        ((54, 0, 0, 0), -0.0664, 0.0664),
    ],
)
def test_the_paired_interval_as_newcombe_1998_tabulates_method_10(counts, low, high):
    assert paired_interval(*table(*counts)) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 2 / 32), (1, 5, 14 / 64), (121, 59, 4.434e-6)],
)
def test_the_sign_test_is_exact(better, worse, p):
    assert sign_test(better, worse) == pytest.approx(p, rel=1e-3)
    assert sign_test(worse, better) == sign_test(better, worse)


class TestTriesThatAreAlike:
    def test_one_try_a_task_counts_as_it_is(self):
        assert effective_tries([(1, 1)] * 5 + [(0, 1)] * 3) == 8

    def test_tries_that_always_agree_are_worth_one(self):
        assert effective_tries([(3, 3), (0, 3), (3, 3), (0, 3), (3, 3)]) == 5

    def test_where_nothing_tells_they_are_worth_one_too(self):
        assert effective_tries([(4, 4)] * 6) == 6
        assert effective_tries([(2, 4)]) == 1

    def test_tries_that_differ_at_every_task_count_in_full(self):
        assert effective_tries([(1, 2)] * 6) == 12

    def test_rao_and_scotts_design_effect(self):
        # The share varies by 6/5 * 4/12^2 = 1/30, that of 12 independent tries by 1/48: 12 / 1.6.
        tasks = [(2, 2), (0, 2), (2, 2), (0, 2), (1, 2), (1, 2)]
        assert effective_tries(tasks) == pytest.approx(7.5)

    def test_the_interval_is_the_wider_for_it(self):
        alike = interval([(3, 3)] * 4 + [(0, 3)] * 4)
        apart = wilson(0.5, 24)
        assert alike[0] < apart[0] < apart[1] < alike[1]

    def test_it_covers_what_it_should(self):
        """Four tries at tasks that differ: 95 % of the intervals hold the mean chance."""
        rng, held, rounds = random.Random(7), 0, 2000
        for _ in range(rounds):
            chances = [rng.betavariate(2, 1) for _ in range(30)]  # mean 2/3
            low, high = interval([(sum(rng.random() < p for _ in range(4)), 4) for p in chances])
            held += low <= 2 / 3 <= high
        assert 0.92 < held / rounds < 0.98


@given(PAIRS)
def test_an_interval_holds_its_share_and_a_difference_its_own(pairs):
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    low, high = interval(first)
    assert 0 <= low <= share_of(first) <= high <= 1
    low, high = paired_interval(first, second)
    assert -1 <= low <= share_of(first) - share_of(second) <= high <= 1
    turned = paired_interval(second, first)
    assert turned == pytest.approx((-high, -low))


def test_no_tasks_have_no_share():
    with pytest.raises(ValueError, match="no tasks"):
        share_of([])
