from __future__ import annotations

import pytest
import torch
from torch import nn

from adaexplore.evaluate.truth.widen import limits_of, widened


class Keeper(nn.Module):
    """Holds tensors in every way a module can, and a function that refers to the module."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.hidden = torch.ones(4)
        self.steps = torch.tensor(3)
        self.double_already = torch.zeros(4, dtype=torch.float64)
        self.through_itself = lambda x: self.layer(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden = self.hidden + 1
        self.steps.add_(1)
        self.double_already.add_(1)
        return self.norm(self.through_itself(x)) * self.hidden + self.double_already.to(x.dtype)


def test_everything_is_float64_inside() -> None:
    model = Keeper()
    with torch.no_grad(), widened(model) as wide:
        out = wide(torch.randn(5, 4, dtype=torch.float64))
        assert {t.dtype for t in wide.parameters()} == {torch.float64}
    assert out.dtype is torch.float64


def test_afterwards_the_same_tensors_hold_the_same_values() -> None:
    model = Keeper()
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    tensors |= {name: getattr(model, name) for name in ("hidden", "steps", "double_already")}
    values = {name: tensor.clone() for name, tensor in tensors.items()}
    with torch.no_grad(), widened(model) as wide:
        wide(torch.randn(5, 4, dtype=torch.float64))
    after = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    after |= {name: getattr(model, name) for name in ("hidden", "steps", "double_already")}
    for name, tensor in tensors.items():
        assert after[name] is tensor
        assert tensor.dtype is values[name].dtype
        assert torch.equal(tensor, values[name])


def test_they_are_put_back_after_an_error_too() -> None:
    model = Keeper()
    with pytest.raises(ValueError, match="in the body"), widened(model):
        raise ValueError("in the body")
    assert {t.dtype for t in model.parameters()} == {torch.float32}
    assert model.hidden.dtype is torch.float32


def test_a_run_in_float64_sees_the_epsilon_of_its_own_dtype() -> None:
    limits = torch.finfo
    with limits_of(torch.bfloat16):
        assert torch.finfo(torch.float64).eps == 2.0**-7
        assert torch.finfo(torch.float32).eps == 2.0**-23
        torch.set_default_dtype(torch.float64)
        try:
            assert torch.finfo().eps == 2.0**-7
        finally:
            torch.set_default_dtype(torch.float32)
        assert torch.finfo().eps == 2.0**-23
    assert torch.finfo is limits
