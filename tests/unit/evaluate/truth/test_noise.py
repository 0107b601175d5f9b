import pytest
import torch

from adaexplore.evaluate.truth.runs import Noise
from adaexplore.sandbox.user.values import Inputs

LENGTHS = [1, 4098, 4099, 10_000]


def numbers(*shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator).to(dtype)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_every_number_is_off_by_its_share_in_float64(length, dtype):
    given = numbers(length, dtype=dtype)
    (moved,) = Noise(1e-3, [False]).on_inputs(Inputs([given])).args
    assert moved.dtype is torch.float64
    off = (moved / given.double() - 1.0)[given.float() != 0]
    assert off.abs().max() <= 3**0.5 * 1e-3 + 1e-12
    if length > 4000:
        assert off.square().mean().sqrt() == pytest.approx(1e-3, rel=0.05)


def test_the_layout_changes_nothing():
    given = numbers(90, 110)
    (straight,) = Noise(1e-3, [False]).on_inputs(Inputs([given])).args
    (turned,) = Noise(1e-3, [False]).on_inputs(Inputs([given.t().contiguous().t()])).args
    assert torch.equal(straight, turned)
    assert turned.stride() == (1, 90)


def test_the_opposite_noise_has_the_opposite_signs():
    given, noise = numbers(5000), Noise(1e-3, [False])
    (one,) = noise.on_inputs(Inputs([given])).args
    (other,) = noise.opposite().on_inputs(Inputs([given])).args
    assert torch.allclose((one + other) / 2, given.double(), rtol=1e-14)


def test_exempt_tensors_and_integers_stay():
    mask, codes = numbers(10), torch.arange(10)
    moved = Noise(1e-3, [True, False]).on_inputs(Inputs([mask, codes])).args
    assert moved[0] is mask
    assert moved[1] is codes
