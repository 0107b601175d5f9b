"""Spearman's rank correlation, by its definition."""

import math

import estimate_ranks
import pytest
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = st.floats(0.01, 1e6)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=20))
def test_spearman_is_what_it_is_by_its_definition(pairs):
    found = estimate_ranks.spearman(pairs)
    first, second = zip(*pairs, strict=True)
    if len(set(first)) == len(set(second)) == len(pairs):
        n = len(pairs)
        squares = sum((sorted(first).index(a) - sorted(second).index(b)) ** 2 for a, b in pairs)
        assert found == pytest.approx(1 - 6 * squares / (n * (n * n - 1)))
    elif min(len(set(first)), len(set(second))) == 1:
        assert math.isnan(found)
    else:
        assert -1.0000001 <= found <= 1.0000001
