import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore_lab.synthesize.sizes import Dim, UnfitError, awkward, broadcast, is_prime, values

NAMES = {"height": 12, "width": 7, "k": 1}
DIMS = st.recursive(
    st.one_of(
        st.integers(1, 9).map(Dim.of),
        st.sampled_from([Dim(value, name) for name, value in NAMES.items()]),
    ),
    lambda inner: st.one_of(
        st.builds(Dim.plus, inner, st.integers(-3, 9)),
        st.builds(Dim.times, inner, st.integers(1, 5)),
        st.builds(Dim.times, inner, inner),
        st.builds(Dim.over, inner, st.integers(1, 4)),
    ),
    max_leaves=8,
)
SHAPES = st.lists(st.integers(1, 3), max_size=4).map(lambda sizes: tuple(map(Dim.of, sizes)))


@given(DIMS)
def test_the_text_of_a_size_says_what_it_is(dim):
    assert eval(dim.text, dict(NAMES)) == dim.value


def test_sums_are_folded_into_one_number():
    assert Dim(12, "height").plus(3).plus(-1).text == "height + 2"
    assert Dim(12, "height").plus(3).plus(-3).text == "height"


@settings(deadline=None)  # the first call imports what torch needs for it
@given(SHAPES, SHAPES)
def test_broadcasting_is_torchs(a, b):
    try:
        expected = tuple(torch.broadcast_shapes(values(a), values(b)))
    except RuntimeError:
        with pytest.raises(UnfitError):
            broadcast(a, b)
    else:
        assert values(broadcast(a, b)) == expected


@given(st.integers(), st.integers(1, 40), st.integers(0, 200))
def test_awkward_sizes_lie_between_their_bounds(seed, low, more):
    assert low <= awkward(random.Random(seed), low, low + more) <= low + more


def test_awkward_sizes_are_mostly_no_powers_of_two():
    rng = random.Random(0)
    drawn = [awkward(rng, 1, 512) for _ in range(500)]
    powers = sum(n & (n - 1) == 0 for n in drawn)
    assert 0.1 < powers / len(drawn) < 0.5
    assert sum(map(is_prime, drawn)) / len(drawn) > 0.25
    assert 1 in drawn
