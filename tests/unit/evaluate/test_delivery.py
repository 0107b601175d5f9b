import pytest
import torch

from adaexplore.evaluate.delivery import Delivery

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]


def delivery(*shape, device="cpu"):
    return Delivery([("output", torch.zeros(*shape, device=device))], device)


@pytest.mark.parametrize("device", DEVICES)
def test_the_reference_s_own_layout_takes_nothing_more(device):
    assert delivery(256, 512, device=device).extra_us([(512, 1)]) == 0.0


@pytest.mark.parametrize("device", DEVICES)
def test_a_transposed_one_takes_longer(device):
    assert delivery(4096, 4096, device=device).extra_us([(1, 4096)]) > 0.0


@pytest.mark.parametrize(
    "strides",
    [
        pytest.param((1 << 40, 1), id="larger than any memory"),
        pytest.param((-512, 1), id="negative"),
        pytest.param((1,), id="of another rank"),
    ],
)
def test_what_nobody_returns_is_granted_nothing(strides):
    assert delivery(256, 512).extra_us([strides]) == 0.0


def test_scalars_and_empty_tensors_take_nothing_more():
    outputs = [("a", torch.zeros(())), ("b", torch.zeros(0, 4))]
    assert Delivery(outputs, "cpu").extra_us([(), (1, 1)]) == 0.0
