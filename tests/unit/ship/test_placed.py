"""A kernel in a live model: right under everything that users do, or the original runs."""

import copy
import importlib
import inspect
import io
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import shipped_blocks
import torch
from shipped_blocks import Block
from torch import nn


@pytest.fixture
def plain(net):
    """The model without the kernel."""
    return copy.deepcopy(net)


@pytest.fixture
def fast(kernel, net, plain):
    """The model with the kernel in both blocks."""
    assert kernel.apply(net).modules == ("blocks.0", "blocks.1")
    kernel.reset_refusals()
    return net


def both(change, fast, plain):
    """Change two models alike."""
    for model in (fast, plain):
        change(model)


@torch.no_grad()
def assert_same(fast, plain, x):
    torch.testing.assert_close(fast(x), plain(x), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def scale_weights(model):
    for weight in model.parameters():
        weight.data.mul_(3)


def replace_linear(model):
    torch.manual_seed(9)
    model.blocks[0].up = nn.Linear(16, 32, bias=False)


def load(model):
    torch.manual_seed(8)
    model.load_state_dict({name: torch.rand_like(t) for name, t in model.state_dict().items()})


def flip_requires_grad(model):
    model.requires_grad_(False)


def train(model):
    model.train()


def mix_modes(model):
    model.blocks[0].up.train()


def there_and_back(model):
    model.double().float()


ACCEPTED = [scale_weights, replace_linear, load, flip_requires_grad, train, mix_modes]
ACCEPTED += [there_and_back]


def test_what_is_no_module_is_refused(kernel):
    with pytest.raises(TypeError, match=r"^apply takes a torch\.nn\.Module, not NoneType$"):
        kernel.apply(None)


def test_a_name_that_no_module_has_is_refused(kernel, net):
    with pytest.raises(ValueError, match=r"^the model has no module 'blocks\.9', 'nope'$"):
        kernel.apply(net, only=["blocks.0", "nope", "blocks.9"])
    assert kernel.apply(net, only=["blocks.1"]).modules == ("blocks.1",)


@pytest.mark.parametrize("change", ACCEPTED)
def test_the_kernel_follows_the_model(change, kernel, fast, plain, x):
    assert_same(fast, plain, x)
    both(change, fast, plain)
    assert_same(fast, plain, x)
    assert kernel.refusals() == {}


class LowRank(nn.Module):
    """A wrapper around a layer, as LoRA has it."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.more = nn.Linear(16, 32)

    def forward(self, x):
        return self.base(x) + self.more(x)


def wrap(model):
    torch.manual_seed(7)
    model.blocks[0].up = LowRank(model.blocks[0].up)


def change_constant(model):
    model.blocks[0].norm.eps = 0.5


def change_collection(model):
    model.blocks[0].factors["residual"][0] = 2.0


def replace_tensor(model):
    model.blocks[0].offset = torch.ones(16)


def change_function(model):
    model.blocks[0].act = nn.functional.relu


def cast(model):
    model.blocks[0].norm.weight = nn.Parameter(model.blocks[0].norm.weight.double().float()[:1])


def add_bias(model):
    model.blocks[0].gate.bias = nn.Parameter(torch.ones(32))


def patch(model):
    layer = model.blocks[0].up
    layer.forward = lambda x: nn.functional.linear(x, layer.weight) + 1


def hook(model):
    model.blocks[0].up.register_forward_hook(lambda layer, args, output: output + 1)


def add_layer(model):
    model.blocks[0].more = nn.Identity()


REFUSED = [wrap, change_constant, change_collection, replace_tensor, change_function, cast]
REFUSED += [add_bias, patch, hook, add_layer]


@pytest.mark.parametrize("change", REFUSED)
def test_a_changed_module_runs_the_original(change, kernel, fast, plain, x, caplog):
    assert_same(fast, plain, x)
    both(change, fast, plain)
    with caplog.at_level(logging.WARNING):
        assert_same(fast, plain, x)
        assert_same(fast, plain, x)
    assert list(kernel.refusals().values()) == [2]
    assert len([r for r in caplog.records if r.name == "block_kernel"]) == 1


def patched(self, x):
    return x + 1


def test_a_class_that_is_patched_afterwards_runs_the_original(kernel, fast, plain, x, monkeypatch):
    assert_same(fast, plain, x)
    monkeypatch.setattr(shipped_blocks.Norm, "forward", patched)
    assert_same(fast, plain, x)
    assert kernel.refusals() == {"the forward of Norm was replaced": 2}
    assert_same(copy.deepcopy(fast), plain, x)
    assert len(kernel.refusals()) == 2
    kernel.undo(fast)
    assert kernel.apply(fast).modules == ()


@torch.no_grad()
def test_other_inputs_run_the_original(kernel, fast, plain, x):
    for other in (torch.rand(5, 16), torch.rand(3, 2, 16), torch.rand(3, 32)[:, ::2]):
        assert_same(fast, plain, other)
        assert sum(kernel.refusals().values()) > 0
        kernel.reset_refusals()
    assert_same(fast.double(), plain.double(), x.double())
    assert sum(kernel.refusals().values()) > 0
    kernel.reset_refusals()
    assert_same(fast.float(), plain.float(), x)
    residual = fast.blocks[0](x, residual=x), plain.blocks[0](x, residual=x)
    torch.testing.assert_close(*residual)
    assert kernel.refusals() == {"other arguments than verified": 1}


@torch.no_grad()
def test_autocast_and_transforms_run_the_original(kernel, fast, plain, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(fast(x), plain(x))
    torch.testing.assert_close(torch.vmap(fast)(x[None]), torch.vmap(plain)(x[None]))
    _, rate = torch.func.jvp(fast, (x,), (x,))
    torch.testing.assert_close(rate, torch.func.jvp(plain, (x,), (x,))[1])
    assert len(kernel.refusals()) == 2


def test_hooks_of_the_whole_module_run(kernel, fast, x):
    seen = []
    fast.blocks[0].register_forward_hook(lambda layer, args, output: seen.append(output.shape))
    fast(x)
    assert seen == [(3, 16)]
    assert kernel.refusals() == {}


def test_a_training_step_is_the_original_s(kernel, fast, plain, x):
    given = [x.clone().requires_grad_() for _ in range(2)]
    for model, inputs in zip((fast, plain), given, strict=True):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(inputs).pow(2).sum().backward()
            optimizer.step()
    torch.testing.assert_close(given[0].grad, given[1].grad)
    for (name, one), other in zip(fast.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, msg=name)
    assert kernel.refusals() == {}


@pytest.mark.filterwarnings("ignore:.*not a double precision")
def test_gradients_agree_with_differences(kernel, fast, x):
    given = x.clone().requires_grad_()
    assert torch.autograd.gradcheck(fast, given, eps=1e-2, atol=1e-2, rtol=1e-2)
    ran = kernel.runs()
    assert ran > 2 * x.numel()  # the differences are those of the kernel's outputs
    assert kernel.refusals() == {}


def test_compiled_whole_with_gradients(kernel, fast, plain, x):
    compiled = torch.compile(fast, fullgraph=True, backend="aot_eager")
    compiled(x).sum().backward()
    plain(x).sum().backward()
    for one, other in zip(fast.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    graphs = []
    torch.compiler.reset()
    torch.compile(fast, fullgraph=True, backend=lambda graph, _: graphs.append(graph) or graph)(x)
    assert graphs[0].code.count("block_kernel") == 2
    assert kernel.refusals() == {}


@torch.no_grad()
@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_model_has_the_kernel(strict, kernel, fast, plain, x):
    program = torch.export.export(fast, (x,), strict=strict)
    assert str(program.graph).count("block_kernel") == 2
    assert kernel.refusals() == {}
    before = kernel.runs()
    assert_same(program.module(), plain, x)
    assert kernel.runs() == before + 2


@pytest.mark.slow
@torch.no_grad()
def test_a_package_of_aotinductor_runs_the_kernel(kernel, fast, plain, x, tmp_path):
    program = torch.export.export(fast, (x,))
    file = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "m.pt2"))
    before = kernel.runs()
    assert_same(torch._inductor.aoti_load_package(file), plain, x)
    assert kernel.runs() == before + 2


@torch.no_grad()
def test_a_compiled_model_notices_a_change(kernel, fast, plain, x):
    torch.compiler.reset()
    compiled = torch.compile(fast, backend="eager")
    assert_same(compiled, plain, x)
    for change in (scale_weights, change_collection, replace_tensor, change_constant, wrap):
        both(change, fast, plain)
        assert_same(compiled, plain, x)
    assert_same(compiled, plain, torch.rand(6, 16))
    assert kernel.refusals()


@torch.no_grad()
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_model_compiled_whole_runs_the_original_at_other_sizes(dynamic, kernel, fast, plain, x):
    torch.compiler.reset()
    compiled = torch.compile(fast, fullgraph=True, backend="eager", dynamic=dynamic)
    for rows in (len(x), 6, 7):
        assert_same(compiled, plain, torch.rand(rows, 16))
    assert kernel.refusals()


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_file(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("again", [copy.deepcopy, by_pickle, by_file])
def test_a_copy_has_weights_of_its_own(again, kernel, fast, plain, x):
    assert_same(fast, plain, x)
    other = again(fast)
    scale_weights(fast)
    assert_same(other, plain, x)
    both(scale_weights, other, plain)
    assert_same(other, plain, x)
    assert kernel.refusals() == {}
    assert kernel.undo(other) == ("blocks.0", "blocks.1")
    assert_same(other, plain, x)


def test_models_built_and_called_in_inference_mode(kernel, plain, x):
    with torch.inference_mode():
        model = nn.Sequential(Block(), Block()).eval()
        expected = model(x)
        assert len(kernel.apply(model).modules) == 2
        torch.testing.assert_close(model(x), expected)


def test_threads_with_models_of_their_own(kernel, fast, plain, x):
    models = [copy.deepcopy(fast) for _ in range(4)]
    for factor, model in enumerate(models):
        for weight in model.parameters():
            weight.data.mul_(factor)

    @torch.no_grad()
    def call(model):
        return [model(x) for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(call, models))
    for results, model in zip(found, models, strict=True):
        kernel.undo(model)
        for result in results:
            torch.testing.assert_close(result, model(x))


def test_weights_of_a_functional_call(fast, plain, x):
    given = {name: t.detach() * 2 for name, t in plain.named_parameters()}
    found, expected = (torch.func.functional_call(m, given, (x,)) for m in (fast, plain))
    torch.testing.assert_close(found, expected)


def test_undo_leaves_the_model_as_it_was(kernel, net):
    before = [dict(vars(module)) for module in net.modules()]
    state = {name: t.clone() for name, t in net.state_dict().items()}
    kernel.apply(net)
    assert kernel.apply(net).modules == ("blocks.0", "blocks.1")  # twice is once
    assert net.state_dict().keys() == state.keys()
    assert kernel.undo(net) == ("blocks.0", "blocks.1")
    assert [vars(module) for module in net.modules()] == before
    assert all(torch.equal(t, state[name]) for name, t in net.state_dict().items())
    assert kernel.undo(net) == ()


def test_undo_refuses_what_others_put_around(kernel, fast):
    inner = fast.blocks[0].forward
    fast.blocks[0]._old_forward = inner  # as accelerate does
    fast.blocks[0].forward = lambda *args: inner(*args)
    with pytest.raises(RuntimeError, match=r"blocks\.0: its forward was replaced after apply"):
        kernel.undo(fast)


def test_other_modules_are_left_alone(kernel, net, caplog):
    net.blocks[0].norm.eps = 0.1
    net.blocks[1] = Block(8)
    applied = kernel.apply(net)
    assert applied.modules == ()
    assert "blocks.0.norm has other constants" in applied.left["blocks.0"]
    assert "blocks.1.norm has other state" in applied.left["blocks.1"]
    assert "no module of the model is the Block" in caplog.text


@pytest.mark.parametrize(
    ("old", "new", "replaced"),
    [
        ("", "", 2),
        ("* self.scale", "* self.scale + 1", 0),
        ("* torch.rsqrt(", "* 2 * torch.rsqrt(", 0),
    ],
)
def test_a_class_is_known_by_its_code(old, new, replaced, kernel, tmp_path, monkeypatch):
    source = inspect.getsource(shipped_blocks)
    source = source.replace(old, new) if old else source
    name = f"other_blocks_{len(source)}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = importlib.import_module(name).Net().eval()
    applied = kernel.apply(model)
    assert len(applied.modules) == replaced
    assert all("other code than verified" in why for why in applied.left.values())
