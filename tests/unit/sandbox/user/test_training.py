"""A training step as one call: names, upstream gradients, copies, precision."""

import copy
import pickle

import pytest
import torch
from torch import nn

from adaexplore.sandbox.user.training import UPSTREAM, TrainingStep, gradients_of
from adaexplore.sandbox.user.values import Inputs, tensors_of


class Tied(nn.Module):
    """Tied weights, a list of tensors, a keyword, integers, and a parameter without use."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.idle = nn.Parameter(torch.ones(4))

    def forward(self, pair, index, *, shift):
        y = self.second(torch.tanh(self.first(pair[0] + self.frozen))) + shift
        return {"y": y[index], "index": index, "sum": pair[1].sum()}


def drawn():
    pair = [torch.rand(3, 4), torch.rand(5)]
    return Inputs([pair, torch.tensor([0, 2])], {"shift": torch.rand(4)})


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Tied()


@pytest.fixture
def step(model):
    return TrainingStep(model, gradients_of(model, drawn()))


def called(step, inputs):
    return step(*inputs.args, **inputs.kwargs)


def test_what_has_a_gradient_is_found_and_named(model):
    found = gradients_of(model, drawn())
    assert found.outputs == (1, 2)  # by key: index, sum, y
    assert found.input_names == ("pair[0]", "pair[1]", "shift")
    assert found.inputs == (0, 1, 3)
    assert found.parameters == ("first.weight", "first.bias")
    assert found.unreached == ("idle",)


def test_a_step_gives_the_gradients_of_a_loss(model, step):
    inputs = step.with_upstream(drawn())
    result = called(step, inputs)
    leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in tensors_of(inputs)]
    out = model([leaves[0], leaves[1]], leaves[2], shift=leaves[3])
    up_sum, up_y = inputs.kwargs[UPSTREAM]
    ((out["y"] * up_y).sum() + out["sum"] * up_sum).backward()
    torch.testing.assert_close(result.forward["y"], out["y"])
    for name, leaf in zip(("pair[0]", "pair[1]", "shift"), (*leaves[:2], leaves[3]), strict=True):
        torch.testing.assert_close(result.input_grads[name], leaf.grad)
    for name in ("first.weight", "first.bias"):
        torch.testing.assert_close(result.parameter_grads[name], model.get_parameter(name).grad)


def test_nothing_accumulates_and_no_graph_is_left(model, step):
    inputs = step.with_upstream(drawn())
    first, second = called(step, inputs), called(step, inputs)
    torch.testing.assert_close(first.parameter_grads, second.parameter_grads, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not first.forward["y"].requires_grad


def test_upstream_gradients_depend_on_the_inputs_alone(step):
    one, other = drawn(), drawn()
    twice = [step.with_upstream(one).kwargs[UPSTREAM] for _ in range(2)]
    torch.testing.assert_close(*twice, rtol=0, atol=0)
    assert not torch.equal(twice[0][1], step.with_upstream(other).kwargs[UPSTREAM][1])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_takes_the_gradients_of_its_own_weights(step, copied):
    inputs = step.with_upstream(drawn())
    other = copied(step)
    with torch.no_grad():
        other.model.first.weight.mul_(2)
    found, expected = called(other, inputs), called(step, inputs)
    assert not torch.equal(found.forward["y"], expected.forward["y"])
    other.load_state_dict(step.state_dict())
    torch.testing.assert_close(called(other, inputs), expected)


def test_autocast_is_for_the_forward_pass():
    seen = []

    class Watching(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(torch.is_autocast_enabled("cpu"))
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.is_autocast_enabled("cpu"))
            return grad

    class Model(nn.Linear):
        def forward(self, x):
            return Watching.apply(super().forward(x))

    model, inputs = Model(4, 3), Inputs([torch.rand(2, 4)])
    step = TrainingStep(model, gradients_of(model, inputs))
    given = step.with_upstream(inputs)
    seen.clear()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = called(step, given)
    assert seen == [True, False]
    assert result.forward.dtype is torch.bfloat16
    assert result.parameter_grads["weight"].dtype is torch.float32


def test_without_data_a_step_has_forms_alone(model):
    meta = model.to("meta")
    inputs = Inputs([[torch.rand(3, 4, device="meta"), torch.rand(5, device="meta")]])
    inputs.args.append(torch.zeros(2, dtype=torch.int64, device="meta"))
    inputs.kwargs["shift"] = torch.rand(4, device="meta")
    step = TrainingStep(meta, gradients_of(meta, inputs))
    result = called(step, step.with_upstream(inputs))
    assert result.parameter_grads["first.weight"].shape == (4, 4)
