"""Each label on the smallest problem that deserves it, and none on those that do not."""

from __future__ import annotations

import itertools
import textwrap

import pytest

from adaexplore.core.problem import Checks, Problem
from adaexplore.evaluate.truth.labels import labels_of, overhead_label
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance

LINEAR = "self.linear = nn.Linear(32, 64)"
CONV = "self.conv = nn.ConvTranspose2d(4, 8, 3)"
PICTURES = "torch.rand(2, 4, 8, 8)"


def source(body, init="pass", inputs="torch.randn(16, 32)"):
    return f"""
import torch
from torch import nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {body}

def get_inputs():
    return [{inputs}]
"""


@pytest.fixture
def probed(tmp_path):
    def probed(text, precision="fp32"):
        text = textwrap.dedent(text)
        problem = Problem("example", text, "cpp", "cpu", checks=Checks(precision))
        instance = Instance.load(
            text, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
        )
        runs = ReferenceRuns(problem, instance, instance.inputs(0))
        return runs, Truths(runs, [])

    return probed


@pytest.fixture
def labels(probed):
    def labels(text, precision="fp32"):
        return labels_of(*probed(text, precision))

    return labels


PLAIN = {
    "linear": source("return F.gelu(self.linear(x))", LINEAR),
    "softmax": source("return x.softmax(-1)"),
    "norm": source("return self.norm(x)", "self.norm = nn.LayerNorm(32)"),
    "sum": source("return x.sum(-1)"),
    "positive inputs": source("return self.linear(x)", LINEAR, "torch.rand(16, 32)"),
    "convolution": source("return self.conv(x)", CONV, PICTURES),
    "pooled": source("return F.avg_pool2d(self.conv(x), 2)", CONV, PICTURES),
    "bias, then mean": source(
        "return (x + self.bias).mean(1)",
        "self.bias = nn.Parameter(torch.randn(32, 1, 1))",
        "torch.randn(4, 32, 8, 8)",
    ),
    "embedding": source(
        "return self.table(x).sum(1)",
        "self.table = nn.Embedding(100, 8)",
        "torch.randint(100, (16, 5))",
    ),
    "complex numbers": source("return torch.fft.fft(x)"),
    "integers beside real numbers": source("return x.max(-1)"),
    "seldom positive": source("return (x - 2.8).relu()", "pass", "torch.randn(256, 256)"),
    "the two largest of each row": source(
        "return torch.where(x >= x.topk(2).values[..., -1:], x, -torch.inf)",
        "pass",
        "torch.randn(64, 1024)",
    ),
    "a diagonal": source("return torch.diag_embed(x)", "pass", "torch.randn(8, 256)"),
}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN.keys())
def test_an_ordinary_problem_has_none(labels, text):
    assert labels(text) == {}


LABELLED = {
    "a difference of the same": (source("y = self.linear(x); return y - y", LINEAR), "constant"),
    "clamped away": (source("return (self.linear(x) - 9).relu()", LINEAR), "constant"),
    "its weights alone": (source("return 0 * x + self.linear.weight.sum()", LINEAR), "constant"),
    "almost its weights alone": (
        source("return self.linear.weight.sum() + 1e-4 * x", LINEAR),
        "input-insensitive",
    ),
    "nearly always clamped": (
        source("return (x - 3.2).relu()", "pass", "torch.randn(64, 128)"),
        "input-insensitive",
    ),
    "a layer that never shows, beside one that does": (
        source(
            "a, b = self.one(x), F.layer_norm(self.two(x), (512,)); "
            "return torch.cat([a, F.softshrink(b, 25.0)], 1)",
            "self.one, self.two = nn.Linear(32, 2), nn.Linear(32, 512)",
        ),
        "input-insensitive",
    ),
    "ones and zeros, and a few that change": (
        source("return F.pad(F.pad(x, (0, 6000), value=1.0), (0, 6000))", "pass"),
        "input-insensitive",
    ),
    "weights that do not matter": (
        source("return x + 1e-5 * self.linear(x)[:, :32]", LINEAR),
        "weight-insensitive",
    ),
    "linear, then sum": (source("return self.linear(x).sum(1)", LINEAR), "collapsible"),
    "linear, then pooled by two": (
        source("return F.gelu(F.avg_pool1d(self.linear(x)[None], 2))", LINEAR),
        "collapsible",
    ),
    "convolution, then global mean": (
        source("return self.conv(x).mean((2, 3)).logsumexp(1)", CONV, PICTURES),
        "collapsible",
    ),
    "argmax": (source("return x.argmax(-1)"), "integer-output"),
    "a comparison": (source("return x > 0, x.argmin(-1)"), "integer-output"),
    "repeated": (source("return x.mean(1, keepdim=True).expand(16, 32)"), "collapsible"),
}


@pytest.mark.parametrize(("text", "label"), LABELLED.values(), ids=LABELLED.keys())
def test_each_label_is_found_and_explained(labels, text, label):
    found = labels(text)
    assert label in found
    assert found[label]


def test_integers_are_named_as_the_reference_returns_them(labels):
    found = labels(source("return (x > 0).to(torch.uint16), x.argmin(-1)"))
    assert found["integer-output"] == "every output is of int64 or uint16 and must be equal"


@pytest.mark.parametrize(("size", "decides"), [(1e-8, False), (2e-7, False), (1e-4, True)])
def test_runs_that_differ_by_what_could_decide_a_verdict(probed, monkeypatch, size, decides):
    runs, truths = probed(source("return x.sigmoid()"))
    run, calls = runs.run, itertools.count()

    def wavering(precision, inputs):
        return [(path, t * (1 + size * next(calls))) for path, t in run(precision, inputs)]

    monkeypatch.setattr(runs, "run", wavering)
    assert ("nondeterministic" in labels_of(runs, truths)) == decides


def test_gradients_are_asked_of_parameters_only_for_the_probe(probed):
    runs, truths = probed(source("return self.linear(x).sum(1)", LINEAR))
    weight = runs.instance.model.linear.weight
    weight.requires_grad_(False)
    labels_of(runs, truths)
    assert not weight.requires_grad
    assert weight.grad is None


class TestOverhead:
    MANY = source("for _ in range(50): x = x + 1\n        return x", "pass", "torch.randn(4)")

    def test_many_small_operations_are(self, probed):
        runs, truths = probed(self.MANY)
        found = overhead_label(runs, truths.from_problem[0].inputs, eager_us=1.0)
        assert "50 operations" in found["overhead-bound"]

    def test_work_that_takes_far_longer_is_not(self, probed):
        runs, truths = probed(self.MANY)
        assert overhead_label(runs, truths.from_problem[0].inputs, eager_us=1e9) == {}
