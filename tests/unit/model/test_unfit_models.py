"""Models that cannot be used: one line each, and the model is left exactly as it was."""

import copy
from dataclasses import dataclass

import pytest
import torch
from small_models import Cnn, Encoder
from torch import nn

from adaexplore.core.errors import BadInputError
from adaexplore.model.calls import calls_of
from adaexplore.model.groups import has_hooks
from adaexplore.model.kept import refuse_unfit
from adaexplore.model.rank import CaptureOptions, rank_model
from adaexplore.model.unseen import Original

X = torch.rand(2, 4, 32)


def look_of(model):
    """Everything that a run of a model could change: state, attributes, code, hooks."""
    return {
        path: (
            type(module),
            {name: id(value) for name, value in vars(module).items()},
            {name: t.clone() for name, t in module.state_dict().items()},
            list(module._forward_hooks),
            list(module._forward_pre_hooks),
            module.forward.__code__,
        )
        for path, module in model.named_modules()
    }


@pytest.fixture
def rank(tmp_path):
    """Rank a model, and compare its state and code before and after."""

    def ranked(model, inputs):
        model.eval()
        before, random = look_of(model), torch.get_rng_state()
        try:
            return rank_model(model, calls_of(inputs), CaptureOptions(tmp_path)).ranking
        finally:
            after = look_of(model)
            assert after.keys() == before.keys()
            for path, (kind, attributes, state, *code) in before.items():
                now_kind, now_attributes, now_state, *now_code = after[path]
                assert (kind, attributes, code) == (now_kind, now_attributes, now_code), path
                assert all(torch.equal(value, now_state[name]) for name, value in state.items())
            assert torch.equal(random, torch.get_rng_state())

    return ranked


def reason(ranking, path):
    found = next(group.reason for group in ranking.groups if path in group.paths)
    assert "\n" not in found
    return found


class Scale(nn.Module):
    """A small layer with a weight."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(32, 32))

    def forward(self, x):
        return x * self.weight[0]


class Wrapped(nn.Module):
    """A model of one module, beside a layer."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.layer = Scale()

    def forward(self, x):
        return self.layer(self.inner(x))


class Counting(nn.Module):
    """Counts its calls in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x.sin() + x


class Branching(nn.Module):
    """Branches on the values of its input."""

    def __init__(self):
        super().__init__()
        self.function = lambda x: x.sin() + x.cos()

    def forward(self, x):
        return self.function(x) if x.sum() > 0 else x


class Exhausting(nn.Module):
    def forward(self, x):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


class InPlace(nn.Module):
    def forward(self, x):
        return x.mul_(2).sin()


class Failing(nn.Module):
    """Raises once it has been called often, by which time it is being timed."""

    def __init__(self, calls):
        super().__init__()
        self.made = []
        self.most = calls

    def forward(self, x):
        self.made.append(x)
        self.latest = x
        if len(self.made) > self.most:
            raise ValueError("no such thing\nas this")
        return x


def test_a_model_that_works_is_left_as_it_was(rank):
    model = Encoder(blocks=1)
    rank(model, [(X,)])
    copy.deepcopy(model).load_state_dict(model.state_dict())


def test_a_hook(rank):
    model = Encoder()
    model.blocks[1].inner.register_forward_hook(lambda *_: None)
    assert "blocks.1.inner has a hook" in reason(rank(model, [(X,)]), "blocks.1")


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_hooks_of_gradients_are_hooks_too(kind):
    layer = nn.Linear(2, 2)
    assert not has_hooks(layer)
    getattr(layer, f"register_{kind}_hook")(lambda *_: None)
    assert has_hooks(layer)


def test_a_hook_of_all_modules(rank):
    hook = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.raises(BadInputError, match="hooks of all modules are set"):
            rank(Encoder(), [(X,)])
    finally:
        hook.remove()


@dataclass
class Arguments:
    x: torch.Tensor
    factor: int = 2


class Given(nn.Module):
    """Takes what it computes with in a dataclass."""

    def forward(self, given):
        return given.x.sin() * given.factor + given.x.cos()


class Typed(nn.Module):
    """Takes a dtype, which no package can compare."""

    def forward(self, x, dtype):
        return x.sin().to(dtype) + x.cos()


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.given = Given()
        self.typed = Typed()

    def forward(self, given):
        return self.typed(self.given(given), torch.float32)


def test_calls_that_a_package_finds_and_calls_that_none_could_find(rank):
    ranking = rank(Both(), [(Arguments(X),)])
    assert reason(ranking, "given") == ""
    assert "no plain data" in reason(ranking, "typed")


def test_tensors_in_a_dataclass_are_seen():
    with pytest.raises(BadInputError, match=r"lie on cpu and meta; move all to one device$"):
        refuse_unfit(Wrapped(Given()).eval(), calls_of([(Arguments(X.to("meta")),)]))
    original = Original(Given(), calls_of([(Arguments(X),), (Arguments(X + 1),)]), "fp32", "cpu")
    unseen = original._calls[0].args[0].x
    assert not torch.equal(unseen, X)
    assert torch.equal(unseen.flatten().sort().values, X.flatten().sort().values)
    assert original._wide is not None


def test_a_lambda_in_a_module_without_a_graph(rank):
    assert "torch.export" in reason(rank(Wrapped(Branching()), [(X,)]), "inner")


def test_a_forward_that_was_replaced_on_the_object(rank):
    inner = InPlace()
    inner.forward = inner.forward
    assert "replaced on the object" in reason(rank(Wrapped(inner), [(X,)]), "inner")


def test_weights_that_are_tied_to_another_module(rank):
    model = Wrapped(nn.Sequential(nn.Linear(32, 32), nn.GELU()))
    model.inner[0].weight = model.layer.weight
    assert (
        reason(rank(model, [(X,)]), "inner")
        == "inner.0.weight is tied to layer.weight, outside of it"
    )


def test_a_buffer_that_calls_change(rank):
    model = Wrapped(Counting())
    assert "a call changes inner.count" in reason(rank(model, [(X,)]), "inner")


def test_a_module_that_writes_to_its_input(rank):
    assert "writes to a tensor" in reason(rank(Wrapped(InPlace()), [(X,)]), "inner")


@pytest.mark.parametrize("calls", [0, 4])
def test_a_model_that_raises_is_left_as_it_was(rank, calls):
    with pytest.raises(BadInputError, match=r"call-1: the model raised ValueError: no such thing$"):
        rank(Wrapped(Failing(calls)), [(X,)])


def test_out_of_memory(rank):
    with pytest.raises(
        BadInputError, match=r"call big: out of memory \([\d.]+ GiB in all\); give smaller inputs$"
    ):
        rank(Wrapped(Exhausting()), {"big": (X,)})


def test_inputs_on_two_devices(rank):
    with pytest.raises(BadInputError, match=r"lie on cpu and meta; move all to one device$"):
        rank(Encoder(), [(X.to("meta"),)])


def test_training_mode(tmp_path):
    with pytest.raises(
        BadInputError, match=r"Cnn is in training mode; call model.eval\(\) before$"
    ):
        rank_model(Cnn(), calls_of([(X,)]), CaptureOptions(tmp_path))


def test_one_module_in_training_mode_is_named(tmp_path):
    model = Encoder().eval()
    model.blocks[1].train()
    with pytest.raises(BadInputError, match=r"^Encoder, module blocks\.1, is in training mode"):
        rank_model(model, calls_of([(X,)]), CaptureOptions(tmp_path))


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("make", [torch.jit.script, lambda module: torch.jit.trace(module, X)])
def test_torchscript(make, tmp_path):
    model = Wrapped(make(nn.Linear(32, 32))).eval()
    with pytest.raises(BadInputError, match=r"^Wrapped, module inner, is TorchScript; give"):
        rank_model(model, calls_of([(X,)]), CaptureOptions(tmp_path))


def test_a_compiled_model(tmp_path):
    model = torch.compile(nn.Sequential(nn.Linear(32, 32)).eval())
    with pytest.raises(BadInputError, match=r"the model is compiled; give the module that went"):
        rank_model(model, calls_of([(X,)]), CaptureOptions(tmp_path))


def test_weights_without_a_shape(tmp_path):
    model = nn.Sequential(nn.Linear(32, 32), nn.LazyLinear(8)).eval()
    with pytest.raises(BadInputError, match=r"module 1, has weights without a shape yet; call"):
        rank_model(model, calls_of([(X,)]), CaptureOptions(tmp_path))


@pytest.mark.parametrize(
    ("inputs", "complaint"),
    [
        ([], "inputs is a list without calls"),
        ({}, "inputs is a dict without calls"),
        (X, "inputs is a Tensor"),
        ([X], "call call-1 is a Tensor"),
        ({"x": X}, "call x is a Tensor"),
        ([(X * torch.ones((), requires_grad=True),)], "cannot be copied"),
    ],
)
def test_inputs_of_another_form(rank, inputs, complaint):
    with pytest.raises(BadInputError, match=complaint):
        rank(Encoder(), inputs)
