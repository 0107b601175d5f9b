"""Weights that are the same under every seed, and other values for them."""

import pytest
import torch
from torch import nn

from adaexplore.evaluate.truth.given.constants import constant_weights, constants_moved, moved


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
        self.two_shares = frozen(torch.tensor([1.0, 0.0]))
        self.minus_one = frozen(torch.full((8,), -1.0))
        self.closed = frozen(torch.full((8,), -20.0))
        self.mixture_logits = frozen(torch.tensor([0.0, -30.0]))
        self.centres = frozen(torch.linspace(-10.0, 10.0, 8))
        self.register_buffer("closed_too", torch.tensor(-8.0))
        self.register_buffer("shares", torch.tensor([0.25, 1e-6, 0.75]))
        self.register_buffer("taps", torch.tensor([-1.0, 0.0, 1.0]))
        self.register_buffer("filling", torch.tensor(-1e9))
        self.register_buffer("of_no_key", torch.tensor(-torch.inf))


def state(seed):
    torch.manual_seed(seed)
    return Branch().state_dict()


def test_constant_weights_are_those_of_every_seed_and_no_tables():
    found = constant_weights(Branch(), state(0), state(1))
    assert set(found) == {
        *("gate", "mixture", "norm.bias", "norm.running_mean", "norm.running_var", "norm.weight"),
        *("offset", "one_expert", "small", "start", "temperature"),
        *("closed", "closed_too", "minus_one", "mixture_logits", "shares", "two_shares"),
    }


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
        *("closed", "minus_one", "small", "temperature"),
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


@pytest.mark.parametrize("value", [-torch.inf, -30.0, -5.0, 8.0, 100.0])
def test_a_gate_that_saturates_does_not_when_moved(value):
    found = moved(torch.full((64,), value))
    assert bool((found.abs() <= 1).all())
    assert bool((found.sign() == (1 if value > 0 else -1)).all())


def test_a_number_in_the_place_of_a_logit_stays_one():
    assert float(moved(torch.tensor(-1e9))) < -1e8
