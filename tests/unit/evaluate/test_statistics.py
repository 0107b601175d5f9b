import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.evaluate.statistics import bootstrap_median

samples = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=15)


@given(samples=samples)
def test_the_interval_holds_the_median_and_stays_within_the_samples(samples):
    low, high = bootstrap_median(samples)
    assert min(samples) <= low <= median(samples) <= high <= max(samples)


@given(samples=samples)
def test_the_same_samples_give_the_same_interval(samples):
    assert bootstrap_median(samples) == bootstrap_median(samples)


@given(samples=samples)
def test_a_lower_level_gives_no_wider_interval(samples):
    low, high = bootstrap_median(samples, level=0.5)
    widest_low, widest_high = bootstrap_median(samples, level=0.99)
    assert widest_low <= low <= high <= widest_high


def test_one_sample_has_no_width():
    assert bootstrap_median([4.2]) == (4.2, 4.2)


def test_no_samples_have_no_interval():
    with pytest.raises(ValueError, match="no samples"):
        bootstrap_median([])


def test_it_covers_the_truth_about_as_often_as_it_says():
    rng = random.Random(1)
    trials, hits = 200, 0
    for _ in range(trials):
        low, high = bootstrap_median([rng.gauss(10.0, 1.0) for _ in range(25)])
        hits += low <= 10.0 <= high
    assert 0.88 <= hits / trials <= 0.995
