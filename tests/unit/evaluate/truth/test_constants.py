"""Weights that are the same under every seed, and other values for them."""

import pytest
import torch
from torch import nn

from adaexplore.evaluate.truth.constants import constant_weights, constants_moved, moved


def frozen(value):
    return nn.Parameter(value, requires_grad=False)


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.gate = nn.Parameter(torch.zeros(8))
        self.start = nn.Parameter(torch.eye(4))
        self.temperature = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("positions", torch.arange(8.0))
        self.register_buffer("offset", torch.zeros(8))
        self.register_buffer("scale", torch.tensor(0.125))
        self.register_buffer("deviation", torch.full((8,), 0.5))
        self.register_buffer("mixture", torch.tensor(1.0))
        self.table = frozen(torch.arange(8.0).cos())
        self.frequencies = frozen(1e-8 ** torch.linspace(0.0, 1.0, 8))
        self.small = frozen(torch.full((8,), 1e-6))
        self.one_scale = frozen(torch.tensor(0.125))
        self.one_expert = frozen(torch.eye(4)[0])


def state(seed):
    torch.manual_seed(seed)
    return Branch().state_dict()


def test_constant_weights_are_those_of_every_seed_and_no_tables():
    found = constant_weights(Branch(), state(0), state(1))
    assert sorted(found) == [
        *("gate", "mixture", "norm.bias", "norm.running_mean", "norm.running_var", "norm.weight"),
        *("offset", "one_expert", "small", "start", "temperature"),
    ]


def test_of_a_frozen_model_those_are_that_may_hide_a_branch():
    found = constant_weights(Branch().requires_grad_(False), state(0), state(1))
    assert {"gate", "norm.weight", "start"} < set(found)
    assert not {"scale", "table", "temperature"} & set(found)


def test_a_constructor_makes_other_values_and_later_ones_the_usual():
    with constants_moved():
        other = state(0)
    usual = state(0)
    changed = {name for name in usual if not torch.equal(usual[name], other[name])}
    assert changed == {
        *("gate", "norm.bias", "norm.running_mean", "norm.running_var", "norm.weight"),
        *("small", "temperature"),
    }
    for name in changed:
        assert torch.equal(other[name], moved(usual[name]))
        assert bool((other[name] != usual[name]).all())


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
def test_moved_values_are_of_a_usual_size(value):
    weight = torch.full((64, 256), value)
    found = moved(weight)
    low, high = (0.0, 1 / 16) if value == 0 else (0.75 * abs(value), 1.25 * abs(value))
    assert low <= float(found.abs().min()) < float(found.abs().max()) <= high
    assert value == 0 or bool((found.sign() == weight.sign()).all())
