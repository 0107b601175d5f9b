"""The truth of references that cast to float32 and narrower."""

from __future__ import annotations

import textwrap

import pytest
import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance

REFERENCE = """
import torch
from torch import nn
{mark}

class Model(nn.Module):
    def forward(self, x):
        {body}

def get_inputs():
    return [torch.randn(8, 256).to(torch.bfloat16)]
"""
NORM = """
        wide = x.to(torch.float32)
        return (wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt()).to(x.dtype)
"""
SOFTMAX = "return torch.softmax(x.float(), -1, dtype=torch.float32).bfloat16()"
IN_PLACE = """
        out = torch.zeros(x.shape, dtype=torch.bfloat16)
        out[:] = x.float().exp()
        return out
"""


def runs_of(body, folder, mark="CASTS_ARE_PRECISION = True"):
    text = REFERENCE.format(body=textwrap.dedent(body).replace("\n", "\n        "), mark=mark)
    problem = Problem("example", text, "cpp", "cpu")
    instance = Instance.of(problem, folder)
    return ReferenceRuns(problem, instance, instance.inputs(0))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (NORM, lambda x: x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()),
        (SOFTMAX, lambda x: torch.softmax(x, -1)),
        (IN_PLACE, lambda x: x.exp()),
    ],
)
def test_the_truth_has_no_cast_in_it(body, expected, tmp_path):
    runs = runs_of(body, tmp_path)
    inputs = runs.instance.inputs(0)
    [truth] = runs.float64(inputs)
    assert torch.allclose(truth, expected(inputs.args[0].double()), rtol=1e-14)


def test_other_runs_cast_as_they_are_written(tmp_path):
    runs = runs_of(NORM, tmp_path)
    [(_, out)] = runs.run("half", runs.instance.inputs(0))
    assert out.dtype is torch.bfloat16


def test_casts_round_in_a_truth_that_nobody_marked(tmp_path):
    runs = runs_of(IN_PLACE, tmp_path, mark="")
    [truth] = runs.float64(runs.instance.inputs(0))
    assert torch.equal(truth, truth.bfloat16().double())


def test_a_view_of_the_bits_is_no_cast(tmp_path):
    body = "return x.double().abs().to(torch.int32).view(torch.float32) + x.double()"
    runs = runs_of(body, tmp_path)
    [truth] = runs.float64(runs.instance.inputs(0))
    [(_, out)] = runs.run("half", runs.instance.inputs(0))
    assert torch.equal(truth, out)


def test_the_truth_says_that_casts_are_left_out(tmp_path):
    notes = []
    Truths(runs_of(NORM, tmp_path), notes)
    assert "casts of the reference to float32 and narrower are left out of its truth" in notes


BEFORE_A_LAYER = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return {of}self.linear(x.float()){to}

def get_inputs():
    return [torch.randn(8, 64)]
"""


@pytest.mark.parametrize("to", ["", ".half().float()"])
def test_a_cast_to_float32_rounds_nothing_in_a_truth(tmp_path, to):
    problem = Problem("example", BEFORE_A_LAYER.format(of="", to=to), "cpp", "cpu")
    instance, notes = Instance.of(problem, tmp_path), []
    inputs = instance.inputs(0)
    runs = ReferenceRuns(problem, instance, inputs)
    [truth] = runs.float64(inputs)
    weight, bias = (p.double() for p in instance.model.parameters())
    exact = inputs.args[0].double() @ weight.mT + bias
    assert torch.equal(truth, exact.half().double()) if to else torch.allclose(truth, exact)
    Truths(runs, notes)
    assert notes == []


def test_it_rounds_where_a_reference_is_in_float64_elsewhere(tmp_path):
    source = BEFORE_A_LAYER.format(of="", to="").replace("64)]", "64).double()]")
    problem = Problem("example", source, "cpp", "cpu")
    instance = Instance.of(problem, tmp_path)
    assert not ReferenceRuns(problem, instance, instance.inputs(0)).wide_casts


BITS = "x.float().view(torch.int32).bitwise_and(-256).view(torch.float32) + self.linear(x) * 0"


def test_it_counts_where_there_is_no_run_without(tmp_path):
    source = BEFORE_A_LAYER.replace("{of}self.linear(x.float()){to}", BITS)
    problem = Problem("example", source, "cpp", "cpu")
    instance = Instance.of(problem, tmp_path)
    inputs = instance.inputs(0)
    runs = ReferenceRuns(problem, instance, inputs)
    assert runs.float64(inputs) is None
    [truth] = runs.float64_otherwise(inputs)
    assert not runs.wide_casts
    [(_, out)] = runs.run("fp32", inputs)
    assert torch.allclose(truth, out.double(), atol=1e-12)


CHECKED = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64, dtype=torch.{dtype})

    def forward(self, x):
        assert x.dtype is torch.{dtype} and self.linear.weight.dtype == x.dtype
        {look}
        y = torch.zeros(8, 64, dtype=x.dtype) + self.linear(x)
        return y.to(x.dtype)

def get_inputs():
    return [torch.randn(8, 64, dtype=torch.{dtype})]
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_reference_that_checks_its_dtype_has_a_truth(dtype, tmp_path):
    problem = Problem("example", CHECKED.format(dtype=dtype, look=""), "cpp", "cpu")
    instance, notes = Instance.of(problem, tmp_path), []
    truths = Truths(ReferenceRuns(problem, instance, instance.inputs(0)), notes)
    assert not any("no float64 run" in note for note in notes)
    weight, bias = (p.double() for p in instance.model.parameters())
    [truth] = truths.from_problem[0].truths
    expected = instance.inputs(0).args[0].double() @ weight.mT + bias
    assert torch.allclose(truth.value, expected, rtol=1e-12, atol=1e-12)


def test_no_address_is_given_of_numbers_that_tell_another_dtype(tmp_path):
    source = CHECKED.format(dtype="float32", look="assert x.data_ptr()")
    problem = Problem("example", source, "cpp", "cpu")
    instance = Instance.of(problem, tmp_path)
    inputs = instance.inputs(0)
    assert ReferenceRuns(problem, instance, inputs).float64_otherwise(inputs) is None


SCRIPTED = """
import torch
from torch import nn

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 256)

    def forward(self, x):
        assert x.dtype == torch.float32
        return torch.relu(self.linear(x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(Inner())

    def forward(self, x):
        return self.inner(x)

def get_inputs():
    return [torch.rand(64, 2048)]
"""


def test_a_strict_run_in_the_place_of_a_truth_leaves_room_for_rounding(tmp_path):
    problem = Problem("example", SCRIPTED, "cpp", "cpu")
    instance, notes = Instance.of(problem, tmp_path), []
    truths = Truths(ReferenceRuns(problem, instance, instance.inputs(0)), notes)
    assert any("no float64 run" in note for note in notes)
    weight, bias = (p.detach() for p in instance.model.parameters())
    for own in truths.from_problem:
        x, [truth] = own.inputs.args[0], own.truths
        parts = zip(x.split(1, 1), weight.split(1, 1), strict=True)
        added = torch.relu(sum(a @ b.mT for a, b in parts) + bias)
        assert truth.classify(truth.deviation(added)) == "fp32"
        halves = torch.relu(x.half().float() @ weight.half().float().mT + bias)
        assert truth.classify(truth.deviation(halves)) is None
