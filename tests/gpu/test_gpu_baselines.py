"""Baselines on a GPU: CUDA graphs, the modes of torch.compile, and what cannot be captured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from on_gpu import DEVICE
from torch import nn

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Checks, Problem
from adaexplore.evaluate.judge import trials
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.evaluate.judge.trials import try_baselines
from adaexplore.evaluate.timing.baselines.offered import (
    Subject,
    baseline_named,
    captured,
    names_offered,
)
from adaexplore.evaluate.truth.precision import baseline_scope
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.user.training import TrainingStep, gradients_of
from adaexplore.sandbox.user.values import Inputs

pytestmark = pytest.mark.gpu

SOURCE = """
import torch
from torch import nn

torch.compiler.set_stance("default")  # the tests' server compiles nothing

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [[nn.Linear(256, 256), nn.LayerNorm(256), nn.ReLU()] for _ in range(12)]
        self.layers = nn.Sequential(*sum(layers, []))

    def forward(self, x):
        return self.layers(x)

def get_inputs():
    return [torch.randn(64, 256)]
"""
ELEMENTWISE = """
import torch
from torch import nn

torch.compiler.set_stance("default")  # the tests' server compiles nothing

class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(nn.functional.gelu(x) * torch.sigmoid(x) + x)

def get_inputs():
    return [torch.randn(512, 512)]
"""
SAME = SOURCE.replace("class Model(", "class ModelNew(").replace(
    "torch.compiler", "# torch.compiler"
)
SYNCHRONIZING = SOURCE.replace(
    "return self.layers(x)", "return self.layers(x) if x.sum().item() < 1e30 else x"
)
PROBLEM = Problem("launches", SOURCE, "triton", DEVICE, checks=Checks("tf32"))
GRAPH = "eager-cuda-graph"
GRAPHS = (GRAPH, "compile-reduce-overhead", "compile-max-autotune")


@pytest.fixture(scope="module")
def judge(server):
    evaluator = LocalEvaluator(server, PROBLEM, timeout_s=120.0, memory_bytes=1 << 34)
    evaluator.prepare()
    yield evaluator
    evaluator.close()


class Small(nn.Module):
    """Several outputs, a convolution, and weights that autocast casts."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=1)
        self.linear = nn.Linear(16, 16)

    def forward(self, x, scale):
        y = torch.relu(self.conv(x)) * scale
        return self.linear(y.mean((2, 3))), {"map": y}


def drawn():
    return Inputs([torch.randn(4, 8, 32, 32, device=DEVICE), torch.rand(1, device=DEVICE)])


@pytest.fixture(scope="module")
def small_module():
    torch.manual_seed(0)
    yield Small().to(DEVICE)
    torch._dynamo.reset()


@pytest.fixture
def small(small_module, shared_gpu):
    return small_module


NAMES = [
    *("compile", "eager-channels-last", "compile-channels-last"),
    *("compile-reduce-overhead", "compile-max-autotune", GRAPH),
]


@pytest.mark.parametrize(
    ("name", "precision"),
    [*((name, "fp32") for name in NAMES), (GRAPH, "half"), ("compile-reduce-overhead", "half")],
)
def test_every_baseline_is_right_on_other_inputs_and_after_later_calls(small, name, precision):
    first, others = drawn(), [drawn() for _ in range(4)]
    one = Subject(small, first, DEVICE)
    assert name in names_offered(one)
    with baseline_scope(precision, DEVICE, autocast=True):
        call = baseline_named(name).build(one)
    with baseline_scope(precision, DEVICE, autocast=True):  # autocast has forgotten its casts
        found = [call(inputs) for inputs in others]
        eager = baseline_named("eager").build(one)
        expected = [eager(inputs) for inputs in others]
    torch.cuda.synchronize()
    bound = 1e-4 if precision == "fp32" else 3e-2
    for ours, theirs in zip(found, expected, strict=True):
        for (path, out), (same, truth) in zip(ours, theirs, strict=True):
            assert path == same
            torch.testing.assert_close(out, truth, atol=bound, rtol=bound)


@pytest.mark.parametrize("name", ["compile", "compile-reduce-overhead", GRAPH])
@pytest.mark.parametrize("precision", ["fp32", "half"])
def test_every_baseline_of_a_training_step_is_right(small, name, precision):
    inputs = [drawn() for _ in range(5)]
    step = TrainingStep(small, gradients_of(small, inputs[0]))
    first, *others = map(step.with_upstream, inputs)
    one = Subject(step, first, DEVICE)
    with baseline_scope(precision, DEVICE, autocast=True):
        call = baseline_named(name).build(one)
    with baseline_scope(precision, DEVICE, autocast=True):
        found = [call(given) for given in others]
        expected = [baseline_named("eager").build(one)(given) for given in others]
    torch.cuda.synchronize()
    bound = 1e-3 if precision == "fp32" else 6e-2
    for ours, theirs in zip(found, expected, strict=True):
        for (path, out), (same, truth) in zip(ours, theirs, strict=True):
            assert path == same
            assert (out - truth).float().norm() <= bound * truth.float().norm(), path


def test_modes_with_graphs_do_not_overwrite_an_output_that_is_kept(small):
    inputs = [drawn() for _ in range(3)]
    with baseline_scope("fp32", DEVICE, autocast=True):
        call = baseline_named("compile-reduce-overhead").build(Subject(small, inputs[0], DEVICE))
        kept = call(inputs[1])
        copies = [tensor.clone() for _, tensor in kept]
        call(inputs[2])
        torch.cuda.synchronize()
    for (_, tensor), copy in zip(kept, copies, strict=True):
        assert torch.equal(tensor, copy)


def test_a_capture_leaves_the_random_generator_alone(small):
    torch.manual_seed(1)
    expected = torch.randn(8, device=DEVICE)
    with baseline_scope("fp32", DEVICE, autocast=True):
        captured(Subject(small, drawn(), DEVICE))
    torch.manual_seed(1)
    assert torch.equal(torch.randn(8, device=DEVICE), expected)


def test_after_a_failed_capture_numbers_can_be_drawn_again(server):
    found = run_job(server, "worker_entries:fail_to_capture", {"device": DEVICE}, 120.0)
    assert found["why"]
    assert found["is_random"]
    assert found["same_stream"]


def test_one_that_cannot_be_captured_is_left_out_with_a_remark(server, monkeypatch):
    monkeypatch.setattr(trials, "share_compiled", lambda: None)
    problem = replace(PROBLEM, source=SYNCHRONIZING)
    eager, graph = try_baselines(server, problem, ["eager", GRAPH])
    assert eager.times_us
    assert not graph.times_us
    assert "captur" in graph.why


def test_a_trial_tells_the_time_of_the_device_for_a_short_call(server, monkeypatch):
    monkeypatch.setattr(trials, "share_compiled", lambda: None)
    problem = replace(PROBLEM, source=ELEMENTWISE)
    eager, compiled = try_baselines(server, problem, ["eager", "compile"])
    [(_, eager_us)], [(_, compiled_us)] = eager.times_us.items(), compiled.times_us.items()
    assert compiled_us < eager_us  # its host takes longer: it checks its guards


def test_the_facts_have_every_baseline(judge):
    facts = judge.prepare()
    assert facts.baselines_us.keys() == {"eager", "compile", *GRAPHS}, facts.notes
    assert facts.took_s.keys() == {"truths", "trials", "labels", "timing", "waiting"}
    times = facts.baselines_us
    assert min(times[name] for name in GRAPHS) < times["eager"]  # it does little but launch


def test_candidates_are_timed_beside_the_two_strongest(judge):
    timing = judge.evaluate(Candidate(SAME, "triton")).timing
    facts = judge.prepare()
    assert timing.strongest in GRAPHS
    assert set(timing.baselines_us) <= facts.baselines_us.keys()
    assert len(timing.baselines_us) == 2
    assert timing.speedup < 1.0 < 1.5 < timing.speedup_eager / timing.speedup


def test_a_confirmation_is_against_every_baseline(judge):
    timing = judge.evaluate(Candidate(SAME, "triton"), again=True).timing
    assert timing.baselines_us.keys() == {"eager", "compile", *GRAPHS}
    assert timing.strongest in GRAPHS
    # The candidate is eager itself: launching takes longer in its process, which has two cores.
    assert 0.3 < timing.speedup_eager < 1.3
