"""A live module becomes a problem that computes the same, and its winner a module again."""

import copy
import dataclasses
import functools
import os
import pickle
import random
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Checks
from adaexplore.problems import kernelbench
from adaexplore.problems.live import capture
from adaexplore.sandbox.user.user_code import Instance


def rand(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


class Mixed(nn.Module):
    """Shared weights, half precision, constants, buffers of both kinds, a structured result."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(4).bfloat16())
        self.register_buffer("table", torch.arange(4.0), persistent=False)
        self.register_buffer("steps", torch.tensor(3))
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.constant = torch.full((4,), 3.0)
        self.unused = nn.Linear(2, 2)

    def forward(self, x, *, factor=1.0, mask=None, pair=None):
        y = x * factor * self.scale + self.table
        if mask is not None:
            y = y.masked_fill(mask, 0)
        y = self.second(self.first(y)) + self.constant + self.steps
        return {"y": y, "more": (pair[0] + y, None, 3), "rows": x.shape[0]}


class Decorated(nn.Module):
    """Its calls go through a function that adds a keyword, as libraries have it."""

    def forward(self, x, mask=None, use_cache=None, scale=2.0):
        return x * scale * (3 if use_cache else 1)

    plain = forward

    @functools.wraps(plain)
    def forward(self, *args, **kwargs):
        return self.plain(*args, **{"use_cache": True} | kwargs)


class Inputless(nn.Module):
    def forward(self, count):
        return torch.ones(count)


@dataclasses.dataclass
class Boxed:
    """No structure that torch knows, for making it does more; two of them compare their tensors."""

    value: torch.Tensor

    def __post_init__(self):
        self.value = self.value.clone()


class Boxing(nn.Module):
    def forward(self, x):
        return Boxed(x.sin())


@dataclasses.dataclass
class Halves:
    first: torch.Tensor
    second: torch.Tensor
    count: int = 2


class Halving(nn.Module):
    def forward(self, x):
        return Halves(*x.sin().chunk(2, -1))


CASES = {
    "a convolution block": (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)).eval(),
        [rand(2, 3, 8, 8)],
        {},
    ),
    "batch norm in training mode": (nn.BatchNorm1d(8), [rand(16, 8)], {}),
    "an LSTM": (nn.LSTM(8, 16, batch_first=True), [rand(2, 5, 8)], {}),
    "attention": (nn.TransformerEncoderLayer(32, 4, batch_first=True).eval(), [rand(2, 6, 32)], {}),
    "half precision": (nn.Linear(8, 4).half(), [rand(2, 8).half()], {}),
    "keywords and structures": (
        Mixed(),
        [rand(3, 4)],
        {"factor": 2.0, "mask": rand(3, 4) > 0.5, "pair": [rand(4), 7]},
    ),
    "a keyword that a decorator adds": (Decorated(), [rand(3)], {"scale": 3.0}),
    "modules by number": (nn.ModuleDict({"0": nn.Linear(2, 2)})["0"], [rand(1, 2)], {}),
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param]


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def same(found, expected):
    assert torch.utils._pytree.tree_structure(found) == torch.utils._pytree.tree_structure(expected)
    torch.testing.assert_close(leaves(found), leaves(expected), rtol=1e-4, atol=1e-5)


def candidate(captured) -> str:
    """The reference itself, as a candidate."""
    return captured.problem.source.replace("class Model(", "class ModelNew(")


@torch.no_grad()
def test_the_winner_takes_the_module_s_place_on_unseen_inputs(case, tmp_path):
    module, args, kwargs = case
    captured = capture(module, args, kwargs, folder=tmp_path)
    fast = captured.optimized(candidate(captured), tmp_path)
    for seed in (1, 2):
        torch.manual_seed(seed)
        unseen = [torch.randn_like(t) for t in args]
        same(fast(*unseen, **kwargs), module(*unseen, **kwargs))


def test_the_winner_holds_the_weights_of_now(tmp_path):
    module = nn.Linear(4, 2)
    captured = capture(module, [rand(3, 4)], folder=tmp_path)
    with torch.no_grad():
        module.weight.mul_(5)
        fast = captured.optimized(candidate(captured), tmp_path)
        same(fast(rand(3, 4)), module(rand(3, 4)))


def test_a_state_dict_of_the_module_fits_the_source(case, tmp_path):
    module, args, kwargs = case
    problem = capture(module, args, kwargs, folder=tmp_path).problem
    model = Instance.of(problem, tmp_path).model
    own = module.state_dict()
    assert own.keys() <= model.state_dict().keys()
    assert not model.load_state_dict(own, strict=False).unexpected_keys


def test_tied_weights_are_tied_in_the_source(tmp_path):
    module, args, kwargs = CASES["keywords and structures"]
    model = Instance.of(capture(module, args, kwargs, folder=tmp_path).problem, tmp_path).model
    assert model.first.weight is model.second.weight


def test_the_reference_computes_what_the_module_does(case, tmp_path):
    module, args, kwargs = case
    problem = capture(module, args, kwargs, folder=tmp_path).problem
    instance = Instance.of(problem, tmp_path)
    [workload] = problem.workloads
    found = [t for _, t in instance(instance.inputs(0, workload))]
    with torch.no_grad():
        expected = [t for t in leaves(module(*args, **kwargs)) if isinstance(t, torch.Tensor)]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_the_file_is_a_problem_of_its_own(tmp_path):
    capture(nn.Linear(4, 2), [rand(3, 4)], folder=tmp_path)
    problem = kernelbench.load(tmp_path / "problem.py", device="cpu", language="cpp")
    instance = Instance.of(problem, tmp_path)
    [(_, output)] = instance(instance.inputs(0))
    assert output.shape == (3, 2)
    assert 0.05 < float(instance.model.weight.detach().std()) < 1.0  # drawn like the module's


def test_the_source_reads_like_a_person_s(tmp_path):
    module = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 4))
    source = capture(module, [rand(2, 4)], folder=tmp_path).problem.source
    assert "torch.ops" not in source
    assert "def forward(self, input):" in source
    assert "linear = F.linear(input, self[0].weight, self[0].bias)" in source
    assert "# 2\n" in source


def test_calls_of_several_sizes_are_workloads_of_one_source(tmp_path):
    module = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    calls = [([rand(2, n, 16)] * 3, {}) for n in (6, 9)]
    captured = capture(module, calls=calls, folder=tmp_path)
    names = [w.name for w in captured.problem.workloads]
    assert names == ["2x6x16_2x6x16_2x6x16", "2x9x16_2x9x16_2x9x16"]
    fast = captured.optimized(candidate(captured), tmp_path)
    with torch.no_grad():
        for args, _ in calls:
            same(fast(*args), module(*args))


class TestOtherCalls:
    @pytest.fixture
    def fast(self, tmp_path):
        module, args, kwargs = CASES["keywords and structures"]
        captured = capture(module, args, kwargs, folder=tmp_path)
        return captured.optimized(candidate(captured), tmp_path), args, kwargs

    def test_the_order_of_keywords_does_not_matter(self, fast):
        model, args, kwargs = fast
        same(model(*args, **dict(reversed(kwargs.items()))), model(*args, **kwargs))

    def test_defaults_may_be_given(self, tmp_path):
        module = Decorated()
        captured = capture(module, [rand(3)], folder=tmp_path)
        fast = captured.optimized(candidate(captured), tmp_path)
        same(fast(rand(3), None, scale=2.0), module(rand(3)))

    def test_other_sizes_are_refused(self, fast):
        model, _, kwargs = fast
        with pytest.raises(ValueError, match="verified for tensors of 3x4, 3x4, 4, not of 1x4"):
            model(rand(1, 4), **kwargs | {"pair": [rand(4), 7]})

    def test_other_constants_are_refused(self, fast):
        model, args, kwargs = fast
        with pytest.raises(ValueError, match="not for these"):
            model(*args, **kwargs | {"factor": 3.0})


class TestUses:
    """What users do with an optimized module: right, or one clear error."""

    @pytest.fixture
    def module(self):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()).eval()

    @pytest.fixture
    def fast(self, module, tmp_path):
        captured = capture(module, [rand(3, 4)], folder=tmp_path)
        return captured.optimized(candidate(captured), tmp_path)

    @pytest.mark.parametrize("way", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    def test_a_copy_has_weights_of_its_own(self, module, fast, way):
        same(fast(rand(3, 4)), module(rand(3, 4)))
        twin = way(nn.Sequential(fast, nn.Identity()))
        with torch.no_grad():
            for parameter in fast.parameters():
                parameter.zero_()
        same(twin(rand(3, 4)), module(rand(3, 4)))

    def test_another_process_loads_what_was_saved(self, module, fast, tmp_path):
        torch.save(fast, tmp_path / "fast.pt")
        torch.save(module(rand(3, 4)), tmp_path / "expected.pt")
        torch.save(rand(3, 4), tmp_path / "x.pt")
        code = """
            import torch
            fast, expected, x = (torch.load(f"{name}.pt", weights_only=False)
                                 for name in ("fast", "expected", "x"))
            torch.testing.assert_close(fast(x), expected)
        """
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def test_its_state_dict_has_the_names_of_the_module(self, module, fast):
        other = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()).eval()
        network = nn.ModuleDict({"block": fast})
        network.load_state_dict({f"block.{k}": v for k, v in other.state_dict().items()})
        same(fast(rand(3, 4)), other(rand(3, 4)))
        assert fast.state_dict().keys() == module.state_dict().keys()
        fast.load_state_dict(module.state_dict())
        same(fast(rand(3, 4)), module(rand(3, 4)))

    def test_weights_may_change_in_place(self, module, fast):
        for model in (module, fast):
            model(rand(3, 4))
            for parameter in model.parameters():
                parameter.data.mul_(2)
        same(fast(rand(3, 4)), module(rand(3, 4)))

    def test_gradients_are_refused(self, fast):
        assert not fast(rand(3, 4)).requires_grad
        with pytest.raises(RuntimeError, match="computes no gradients"):
            fast(rand(3, 4).requires_grad_())
        with torch.no_grad():
            fast(rand(3, 4).requires_grad_())
        fast.requires_grad_()
        with pytest.raises(RuntimeError, match="computes no gradients"):
            fast(rand(3, 4))

    def test_another_mode_is_refused(self, fast):
        with pytest.raises(RuntimeError, match=r"call \.eval\(\) on it"):
            nn.Sequential(fast).train()(rand(3, 4))
        fast.eval()(rand(3, 4))

    def test_other_dtypes_and_devices_are_refused(self, fast):
        with pytest.raises(ValueError, match="of 3x4 float32 on cpu, not of 3x4 float64 on cpu"):
            fast(rand(3, 4).double())
        with pytest.raises(ValueError, match="not of 3x4 float32 on meta"):
            fast(rand(3, 4).to("meta"))

    def test_weights_that_were_cast_are_refused(self, fast):
        network = nn.Sequential(fast).bfloat16()
        with pytest.raises(ValueError, match="was moved or cast"):
            network(rand(3, 4))
        network.float()
        fast(rand(3, 4))


def test_a_result_in_a_dataclass_of_the_user_is_one_again(tmp_path):
    x = rand(3, 4)
    captured = capture(Halving(), [x], folder=tmp_path)
    found = captured.optimized(candidate(captured), tmp_path)(x)
    assert type(found) is Halves
    assert found.count == 2
    torch.testing.assert_close([found.first, found.second], [*x.sin().chunk(2, -1)])


class TestSideEffects:
    def test_random_numbers_go_on_as_before(self, tmp_path):
        module = nn.Linear(4, 2)
        torch.manual_seed(3)
        random.seed(3)
        expected = torch.rand(2).tolist(), random.random()
        torch.manual_seed(3)
        random.seed(3)
        captured = capture(module, [rand(3, 4)], folder=tmp_path)
        captured.optimized(candidate(captured), tmp_path)
        assert (torch.rand(2).tolist(), random.random()) == expected

    def test_statistics_and_mode_stay(self, tmp_path):
        module = nn.BatchNorm1d(8)
        capture(module, [rand(16, 8)], folder=tmp_path)
        assert module.training
        assert int(module.num_batches_tracked) == 0
        assert bool((module.running_mean == 0).all())


@pytest.mark.parametrize(
    ("module", "calls", "expected"),
    [
        (nn.Dropout(0.5), [([rand(8, 8)], {})], r"call \.eval\(\) on the module first"),
        (nn.Linear(4, 2), [([rand(3, 5)], {})], "the example call raised RuntimeError"),
        (nn.Linear(4, 2), [([], {})], "does not fit forward"),
        (nn.Linear(4, 2), [], "give an example call"),
        (Inputless(), [([3], {})], "has no tensor"),
        (
            Mixed(),
            [([rand(3, 4)], {"factor": f, "pair": [rand(4)]}) for f in (1.0, 2.0)],
            "differ in more than the sizes",
        ),
        (nn.Identity(), [([object()], {})], "an argument is of type object"),
        (
            Mixed(),
            [([rand(n, 4)], {"factor": Boxed(rand(n)), "pair": [rand(4)]}) for n in (3, 5)],
            "an argument is of type Boxed",
        ),
        (Boxing(), [([rand(n, 4)], {}) for n in (3, 5)], "returns a value of type Boxed"),
        (nn.Linear(4, 2, device="meta"), [([rand(3, 4)], {})], "move all to one device"),
    ],
)
def test_what_cannot_be_captured_is_said_in_one_line(module, calls, expected, tmp_path):
    with pytest.raises(BadProblemError, match=expected) as caught:
        capture(module, calls=calls, folder=tmp_path, name="mine")
    assert str(caught.value).startswith("mine: ")
    assert "\n" not in str(caught.value)


class TestTransformers:
    @pytest.fixture
    def llama(self):
        return pytest.importorskip("transformers.models.llama.modeling_llama")

    @pytest.fixture
    def config(self, llama):
        sizes = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": 50}
        heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1}
        return llama.LlamaConfig(**sizes, **heads)

    def test_a_mlp(self, llama, config, tmp_path):
        module = llama.LlamaMLP(config)
        captured = capture(module, [rand(2, 5, 32)], folder=tmp_path)
        fast = captured.optimized(candidate(captured), tmp_path)
        with torch.no_grad():
            same(fast(rand(2, 5, 32)), module(rand(2, 5, 32)))
        assert "self.gate_proj.weight" in captured.problem.source

    def test_a_whole_model_returns_a_model_output(self, llama, config, tmp_path):
        module = llama.LlamaForCausalLM(config).eval()
        tokens = torch.arange(12).reshape(2, 6)
        captured = capture(module, [tokens], {"use_cache": False}, folder=tmp_path)
        fast = captured.optimized(candidate(captured), tmp_path)
        with torch.no_grad():
            found, expected = (m(tokens + 1, use_cache=False) for m in (fast, module))
        assert type(found) is type(expected)
        torch.testing.assert_close(found.logits, expected.logits)

    def test_a_cache_among_the_outputs_names_the_way_out(self, llama, config, tmp_path):
        module = llama.LlamaForCausalLM(config).eval()
        with pytest.raises(BadProblemError, match="use_cache=False"):
            capture(module, [torch.arange(6)[None]], {"use_cache": True}, folder=tmp_path)


class Branching(nn.Sequential):
    """A module without a graph: it branches on a value."""

    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)


@pytest.mark.parametrize("kind", [nn.Sequential, Branching])
def test_frozen_weights_stay_frozen(kind, tmp_path):
    module, x = kind(nn.Linear(4, 4), nn.Linear(4, 2)), torch.rand(3, 4)
    module[0].requires_grad_(False)
    problem = capture(module, (x,), folder=tmp_path, checks=Checks(backward=True)).problem
    assert Instance.judged(problem, tmp_path).gradients.parameters == ("1.weight", "1.bias")
