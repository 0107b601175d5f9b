"""Grids and clusters as Triton's launcher reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.evaluate.kernels.launcher import RefusedLaunchError, checked_grid

PARTS = [st.integers(1, most) for most in (2**31 - 1, 65_535, 65_535)]


@given(grid=st.tuples(*PARTS).filter(lambda g: g[0] * g[1] * g[2] < 2**31))
def test_a_grid_within_the_limits_is_unchanged(grid):
    assert checked_grid("k", grid, 1) == grid


@pytest.mark.parametrize(
    ("grid", "num_ctas"),
    [
        ((2**31, 1, 1), 1),
        ((1, 65_536, 1), 1),
        ((1, 1, 65_536), 1),
        ((-1, -1, 1), 1),
        ((2**30, 1, 1), 2),
        ((1, 1, 1), 32),
    ],
)
def test_a_grid_beyond_the_limits_is_refused(grid, num_ctas):
    with pytest.raises(RefusedLaunchError, match=r"^Triton Error \[CUDA\]: invalid argument: k "):
        checked_grid("k", grid, num_ctas)


@pytest.mark.parametrize("grid", [(65_536, 65_535, 1), (2**20, 2**12, 1), (2**16, 2**15, 1)])
def test_a_grid_that_overflows_tritons_count_is_refused(grid):
    with pytest.raises(RefusedLaunchError, match="Triton counts programs in 32 bits"):
        checked_grid("k", grid, 1)


@pytest.mark.parametrize("grid", [(0, 1, 1), (5, 0, 1), (-3, 1, 1), (0, 70_000, 1)])
def test_an_empty_grid_starts_nothing(grid):
    assert checked_grid("k", grid, 1) == (0, 0, 0)


@pytest.mark.parametrize("part", [1.0, "1", None, 0.5])
def test_a_size_that_is_not_an_integer_is_refused(part):
    with pytest.raises(TypeError):
        checked_grid("k", (1, part, 1), 1)
