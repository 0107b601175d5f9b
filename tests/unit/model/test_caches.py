"""Layers that write to a static cache: as problems, and with a kernel in their place."""

import copy

import pytest
import torch
from torch import nn

from adaexplore.model.calls import calls_of
from adaexplore.model.placements import Placements
from adaexplore.model.rank import CaptureOptions, rank_model
from adaexplore.model.unseen import Original
from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel
from adaexplore.problems.live import capture

transformers = pytest.importorskip("transformers")
STEPS = 5


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
    )
    return transformers.Qwen3ForCausalLM(config).eval()


def cache_of(model):
    cache = transformers.StaticCache(config=model.config, max_cache_len=16)
    cache.early_initialization(2, 1, 16, torch.float32, torch.device("cpu"))
    return cache


@pytest.fixture(scope="module")
def call(model):
    """The decoding of the seventh token."""
    cache = cache_of(model)
    ids = torch.randint(0, 64, (2, 7))
    with torch.no_grad():
        model(input_ids=ids[:, :6], cache=cache)
    return {"input_ids": ids[:, 6:], "cache": cache}


@pytest.fixture(scope="module")
def problem(model, call, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranked")
    before = [layer.keys.clone() for layer in call["cache"].layers]
    ranked = rank_model(model, calls_of([call]), CaptureOptions(folder))
    assert all(map(torch.equal, before, [layer.keys for layer in call["cache"].layers]))
    return ranked.problems["Qwen3DecoderLayer"]


@pytest.fixture(scope="module")
def package(problem, tmp_path_factory):
    """The captured code as the kernel."""
    folder = tmp_path_factory.mktemp("kernels")
    source = problem.captured.problem.source.replace("class Model(", "class ModelNew(")
    described = describe_kernel(problem.captured.problem, source, "layer", folder)
    return import_kernel(described, folder)


@pytest.fixture(scope="module")
def placements(model, problem, package):
    """The kernel for both layers."""
    found = Placements(model)
    found.add("layer", package, problem.group.paths)
    return found


@torch.no_grad()
def decode(model, call, run=None):
    """Return the tokens of some steps, and the cache."""
    token, cache = call["input_ids"], copy.deepcopy(call["cache"])
    tokens = []
    for _ in range(STEPS):
        logits = (model if run is None else run)(input_ids=token, cache=cache).logits
        token = logits[:, -1:].argmax(-1)
        tokens.append(token)
    return torch.cat(tokens, 1), cache


def assert_same(found, expected):
    assert torch.equal(found[0], expected[0])
    for one, other in zip(found[1].layers, expected[1].layers, strict=True):
        torch.testing.assert_close(one.keys, other.keys)
        torch.testing.assert_close(one.values, other.values)
        assert torch.equal(one.cumulative_length, other.cumulative_length)


def test_equal_layers_are_one_problem_that_takes_the_tensors_of_one_layer(problem):
    assert problem.group.paths == ("model.layers.0", "model.layers.1")
    interface = "cache_keys, cache_values, cache_cumulative_length"
    assert interface in problem.captured.problem.source
    assert problem.captured.writes == ((3, 2), (4, 2), (5, None))


def test_a_kernel_fills_the_cache_of_each_layer(model, call, placements):
    expected = decode(model, call)
    ran = placements.runs
    with placements.only(["layer"]):
        assert_same(decode(model, call), expected)
        assert_same(decode(copy.deepcopy(model), call), expected)
    assert placements.runs == ran + 2 * 2 * STEPS
    assert placements.refusals == {}


@pytest.mark.slow
def test_a_compiled_model_fills_the_cache_in_the_order_of_the_layers(model, call, placements):
    torch.compiler.reset()
    expected = decode(model, call)
    with placements.only(["layer"]):
        compiled = torch.compile(model, fullgraph=True)
        assert_same(decode(model, call, compiled), expected)


def test_gradients_and_other_caches_run_the_original(model, call, package, placements):
    package.reset_refusals()
    with placements.only(["layer"]):
        model(**copy.deepcopy(call)).logits.sum().backward()
        grads = [p.grad.clone() for p in model.parameters()]
        with torch.no_grad():
            dynamic = model(input_ids=call["input_ids"]).logits
    assert list(package.refusals().values()) == [2, 2]
    model.zero_grad()
    model(**copy.deepcopy(call)).logits.sum().backward()
    assert all(map(torch.equal, grads, [p.grad for p in model.parameters()]))
    with torch.no_grad():
        torch.testing.assert_close(dynamic, model(input_ids=call["input_ids"]).logits)


def test_a_cache_is_cast_for_the_comparison_in_a_wider_type(model, call):
    [same] = Original(model, calls_of([call]), "fp32", "cpu").differences(model)
    assert 0 < same.error == same.own_error < 1e-5


@pytest.mark.slow
def test_caches_that_grow_and_layers_without_a_number_are_left_out(model, call, tmp_path):
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=call["input_ids"], cache=cache)
    growing = {"input_ids": call["input_ids"], "cache": cache}
    ranked = rank_model(model, calls_of([growing]), CaptureOptions(tmp_path)).ranking
    reasons = {group.kind: group.reason for group in ranked.groups}
    assert "of type GrowingCache" in reasons["Qwen3DecoderLayer"]


class Adds(nn.Module):
    def forward(self, x, y):
        x.add_(y)
        return x * 2


def test_an_argument_that_a_module_writes_to_is_written_to_by_its_winner(tmp_path):
    x, y = torch.rand(2, 3), torch.rand(2, 3)
    captured = capture(Adds(), (x, y), folder=tmp_path)
    source = captured.problem.source.replace("class Model(", "class ModelNew(")
    fast = captured.optimized(source, tmp_path)
    given, expected = x.clone(), x.clone()
    with torch.no_grad():
        assert torch.equal(fast(given, y), Adds()(expected, y))
    assert torch.equal(given, expected)


def test_tokens_of_a_decoder_are_compared_step_by_step(model, call):
    plain = {"input_ids": call["input_ids"].repeat(1, 3)}
    original = Original(model, calls_of({"with": call, "without": plain}), "fp32", "cpu")
    differences = original.differences(model)
    assert [(one.agreeing, one.steps) for one in differences] == [(10, 10), (64, 64)]
    assert all(one.is_same for one in differences)
    later = copy.deepcopy(model)
    later.model.register_forward_hook(shift_the_second_of_all_but_long_calls, with_kwargs=True)
    with_cache, without = original.differences(later)
    assert (with_cache.is_same, without.is_same) == (True, False)
    assert without.agreeing < 64


def test_tokens_count_where_a_kernel_runs_in_their_steps(model, call, package, placements):
    plain = {"input_ids": call["input_ids"].repeat(1, 3)}
    original = Original(model, calls_of({"with": call, "without": plain}), "fp32", "cpu")
    with placements.only(["layer"]):
        differences = original.differences(model, lambda: package.runs())
    assert [(one.agreeing, one.steps) for one in differences] == [(10, 10), (0, 0)]


def shift_the_second_of_all_but_long_calls(module, args, kwargs, output):
    """Make a model wrong in generated tokens alone."""
    if type(kwargs.get("past_key_values") or kwargs.get("cache")).__name__ == "DynamicCache":
        output.last_hidden_state = output.last_hidden_state.flip(-1)
    return output
