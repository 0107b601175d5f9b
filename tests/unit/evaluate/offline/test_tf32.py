import pytest
import torch

from adaexplore.evaluate.truth.tf32 import EmulatedTf32

PRODUCTS = {
    "mm": lambda a: a @ a,
    "linear": lambda a: torch.nn.functional.linear(a, a, a[0]),
    "bmm": lambda a: a[None] @ a[None],
    "conv2d": lambda a: torch.nn.functional.conv2d(a[None, None], a[None, None, :3, :3]),
}


def error(value, truth):
    return float((value.double() - truth).norm() / truth.norm())


class TestEmulation:
    @pytest.mark.parametrize("name", PRODUCTS)
    def test_products_have_the_error_of_ten_bit_operands(self, name):
        a = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
        truth = PRODUCTS[name](a.double())
        with EmulatedTf32():
            rounded = PRODUCTS[name](a)
        assert error(PRODUCTS[name](a), truth) < 2e-6
        assert 1e-4 < error(rounded, truth) < 1e-3

    def test_ten_bit_operands_are_multiplied_exactly(self):
        a = torch.arange(1024.0).reshape(32, 32)
        with EmulatedTf32():
            rounded = a @ torch.eye(32)
        assert torch.equal(rounded, a)

    def test_other_operations_and_dtypes_are_unchanged(self):
        a = torch.randn(64, 64)
        with EmulatedTf32():
            assert torch.equal(a + a, a * 2)
            half = a.half() @ a.half()
        assert torch.equal(half, a.half() @ a.half())

    def test_infinity_and_nan_stay(self):
        a = torch.tensor([[float("inf"), float("nan")]])
        with EmulatedTf32():
            out = a.t() @ torch.ones(1, 1)
        assert out[0].isinf()
        assert out[1].isnan()
