"""A shipped kernel that was verified with its backward pass trains with that pass."""

import importlib

import pytest
import torch
from shipped_blocks import no_compiler, record
from torch import nn

from adaexplore.core.errors import BadInputError
from adaexplore.ship.ship import ship


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x):
        return torch.tanh(x) * self.weight


KERNEL = """
import torch
from torch import nn

CALLS = []


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        CALLS.append("forward")
        ctx.save_for_backward(torch.tanh(x), weight)
        return torch.tanh(x) * weight

    @staticmethod
    def backward(ctx, grad):
        CALLS.append("backward")
        tanh, weight = ctx.saved_tensors
        return grad * weight * (1 - tanh * tanh), (grad * tanh).sum(0) * 1.0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x):
        return Function.apply(x, self.weight)
"""


def shipped(path, source=KERNEL):
    x = torch.rand(5, 8)
    record(Scale(), path / "run", source, [x], with_backward=True)
    with no_compiler():
        return ship(path / "run", path / "package", name=f"scale_{path.name}")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    package = shipped(tmp_path_factory.mktemp("own"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(package.folder / "src"))
        yield importlib.import_module(package.spec.name)


def gradients(model, x):
    x = x.clone().requires_grad_()
    out = model(x)
    found = torch.autograd.grad(out, [x, *model.parameters()], torch.ones_like(out) * 3)
    return [out, *found]


def test_training_runs_each_pass_of_the_kernel_once(kernel):
    model, plain = Scale(), Scale()
    plain.load_state_dict(model.state_dict())
    assert kernel.apply(model).modules == ("",)
    calls = importlib.import_module(f"{kernel.__name__}.winner").CALLS
    for _ in range(2):
        calls.clear()
        x = torch.rand(5, 8)
        torch.testing.assert_close(gradients(model, x), gradients(plain, x))
        assert calls == ["forward", "backward"]
        with torch.no_grad():
            for one in (model, plain):
                one.weight.mul_(2)
    assert kernel.refusals() == {}


def test_a_compiled_training_step_has_the_kernels_backward(kernel):
    model, plain = Scale(), Scale()
    plain.load_state_dict(model.state_dict())
    kernel.apply(model)
    calls = importlib.import_module(f"{kernel.__name__}.winner").CALLS
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = torch.rand(5, 8)
    gradients(compiled, x)
    calls.clear()
    found, expected = gradients(compiled, x), gradients(plain, x)
    torch.testing.assert_close(found, expected)
    assert calls == ["forward", "forward", "backward"]


@pytest.mark.slow
def test_a_wrong_backward_pass_is_not_shipped(tmp_path):
    with pytest.raises(BadInputError, match=r"wrong by 1\.0e-01 .* gradients"):
        shipped(tmp_path, KERNEL.replace("* 1.0", "* 1.1"))


def test_the_readme_says_whose_gradients_they_are(kernel):
    readme = (importlib.resources.files(kernel.__name__) / "../../README.md").read_text()
    assert "the kernel's own backward pass" in readme
