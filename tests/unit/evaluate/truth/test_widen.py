from __future__ import annotations

import pytest
import torch
from torch import nn

from adaexplore.evaluate.truth.widen import limits_noted, limits_of, widened


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


def test_a_run_in_float64_sees_the_limits_that_its_own_run_asked_for() -> None:
    limits, noted = torch.finfo, []
    with limits_noted(noted):
        assert torch.finfo(torch.bfloat16).eps == 2.0**-7
        assert torch.finfo().eps == 2.0**-23
        assert torch.finfo(torch.float16).eps == 2.0**-10
    with limits_of(noted, of_float32=True):
        assert torch.finfo(torch.float64).eps == 2.0**-7
        torch.set_default_dtype(torch.float64)
        try:
            assert torch.finfo().eps == 2.0**-23
        finally:
            torch.set_default_dtype(torch.float32)
        assert torch.finfo(torch.float32).eps == 2.0**-23  # one that is narrow there too
        assert torch.finfo(torch.float64).eps == 2.0**-52  # one that was not asked for
    assert torch.finfo is limits


@pytest.mark.parametrize(("of_float32", "eps"), [(True, 2.0**-23), (False, 2.0**-52)])
def test_an_rms_norm_without_an_epsilon_has_that_of_the_reference(of_float32, eps) -> None:
    x = torch.full((1, 4), 1e-6, dtype=torch.float64)
    with limits_of((), of_float32=of_float32):
        out = nn.RMSNorm(4, elementwise_affine=False)(x)
    assert torch.allclose(out, x / (x.square().mean() + eps).sqrt(), rtol=1e-12)


class Container(nn.Module):
    """Holds tensors in lists and dicts, one of them a parameter of its own, and complex ones."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.layers = [torch.ones(4), self.weight, "name"]
        self.by_name = {"a": torch.zeros(4), "b": 3}


def test_complex_parameters_and_tensors_in_containers_are_wide_and_put_back() -> None:
    model = Container()
    layers, by_name, weight = model.layers, model.by_name, model.weight.data
    with torch.no_grad(), widened(model) as wide:
        assert wide.weight.dtype is torch.complex128
        assert wide.layers[0].dtype is torch.float64
        assert wide.layers[1] is wide.weight
        assert wide.layers[2] == "name"
        assert wide.by_name["a"].dtype is torch.float64
        wide.layers[0].add_(1)
    assert model.layers is layers
    assert model.by_name is by_name
    assert model.weight.data is weight or torch.equal(model.weight.data, weight)
    assert layers[0].tolist() == [1.0] * 4
