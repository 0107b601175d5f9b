import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.evaluate.timing.statistics import median_interval

samples = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40)


@given(samples=samples)
def test_the_interval_holds_the_median_and_stays_within_the_samples(samples):
    low, high = median_interval(samples)
    assert min(samples) <= low <= median(samples) * (1 + 1e-12)
    assert median(samples) * (1 - 1e-12) <= high <= max(samples)


@given(samples=samples, seed=st.integers())
def test_the_order_of_the_samples_does_not_matter(samples, seed):
    shuffled = random.Random(seed).sample(samples, len(samples))
    assert median_interval(samples) == median_interval(shuffled)


@given(samples=samples)
def test_a_lower_level_gives_no_wider_interval(samples):
    low, high = median_interval(samples, level=0.5)
    widest_low, widest_high = median_interval(samples, level=0.99)
    assert widest_low <= low * (1 + 1e-12)
    assert high <= widest_high * (1 + 1e-12)


def test_one_sample_has_no_width():
    assert median_interval([4.2]) == (4.2, 4.2)


def test_no_samples_have_no_interval():
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


def test_few_samples_give_their_range():
    assert median_interval([5.0, 1.0, 3.0, 2.0]) == (1.0, 5.0)


def test_a_worked_example():
    """Ten samples at 95 %: 97.9 % between the second and ninth, 89.1 % between third and eighth."""
    low, high = median_interval([float(i) for i in range(1, 11)])
    assert (low, high) == pytest.approx((2 + 0.658, 9 - 0.658), abs=1e-3)


@pytest.mark.parametrize("count", [7, 9, 15, 25])
def test_it_covers_the_truth_about_as_often_as_it_says(count):
    rng = random.Random(count)
    trials, hits = 2000, 0
    for _ in range(trials):
        low, high = median_interval([rng.expovariate(1.0) for _ in range(count)])
        hits += low <= 0.6931 <= high
    assert 0.935 <= hits / trials <= 0.97
