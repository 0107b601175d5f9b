"""What a winner's file says and does about its uses."""

import pytest
import torch

from adaexplore.core.verdict.uses import Use
from adaexplore.run.outcome.uses import to_use

LOSING = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, *, factor=None):
        with torch.no_grad():
            y = self.linear(x) if factor is None else self.linear(x) * factor
        return {"y": y, "places": (y.argmax(-1), 2 * x.detach())}
"""
USES = (Use("gradients", "detached", "the outputs have no gradient"), Use("pickle", "holds"))


@pytest.fixture
def model():
    space = {}
    exec(to_use(LOSING, USES), space)
    return space["ModelNew"]()


def test_a_backward_pass_raises_where_gradients_get_lost(model):
    outputs = model(torch.ones(2, 4))
    for output in (outputs["y"], outputs["places"][1]):
        with pytest.raises(RuntimeError, match="loses gradients"):
            (output.sum() * 2).backward()
    assert all(weight.grad is None for weight in model.parameters())


@pytest.mark.parametrize("asked", ["x", "factor"])
def test_the_gradient_of_an_input_is_refused_too(model, asked):
    given = {"x": torch.ones(2, 4), "factor": torch.ones(4)}
    given[asked].requires_grad_()
    model.requires_grad_(False)
    output = model(given["x"], factor=given["factor"])["y"]
    with pytest.raises(RuntimeError, match="loses gradients"):
        output.sum().backward()


def test_without_a_backward_pass_it_is_what_it_was(model):
    outputs = model(torch.ones(2, 4))
    outputs["y"] += 1  # an output that is written in place
    index, doubled = outputs["places"]
    assert index.dtype is torch.int64
    assert doubled.tolist() == [[2.0] * 4] * 2
    with torch.no_grad():
        assert not model(torch.ones(2, 4))["y"].requires_grad
    frozen = model.requires_grad_(False)
    assert not frozen(torch.ones(2, 4))["y"].requires_grad


@pytest.mark.slow
def test_torch_compile_goes_around_it(model):
    compiled = torch.compile(model, backend="aot_eager")
    output = compiled(torch.ones(2, 4))["y"]
    assert torch.equal(output, model(torch.ones(2, 4))["y"])


def test_the_uses_are_comments_and_other_sources_stay_as_they_are():
    assert to_use(LOSING, ()) == LOSING
    source = to_use(LOSING, (USES[1], Use("gradients", "refuses", "x\ny")))
    comments = [line for line in source.splitlines() if line.startswith("#")]
    assert source.endswith(LOSING)
    assert any("holds in use: pickle" in line for line in comments)
