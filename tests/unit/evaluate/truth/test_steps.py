"""Values that lie within rounding of a step may fall either way, all of them and no others."""

import pytest
import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance

NEAR = 1 << 10
FACTOR = 1.1
SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    x = 30 * torch.randn(1 << 16)
    whole = torch.arange(1 << 10) % 90
    x[: 1 << 10] = ((whole + 0.5) / 1.1).to(torch.float32)
    return [x]
"""


@pytest.fixture
def truth_of(tmp_path):
    def truth_of(result):
        problem = Problem("steps", SOURCE.format(result=result), "cpp", "cpu")
        instance = Instance.of(problem, tmp_path)
        truths = Truths(ReferenceRuns(problem, instance, instance.inputs(0)), [])
        return truths.sets[0].truths[0], instance.inputs(0).args[0]

    return truth_of


def other_side(x):
    """Round as a kernel would that is off by one rounding, upwards and downwards."""
    exact = x.double() * FACTOR
    up, down = torch.round(exact * (1 + 2e-7)), torch.round(exact * (1 - 2e-7))
    rounded = torch.round(exact)
    return torch.where(up != rounded, up, down)


def accepted(truth, out):
    return truth.classify(truth.deviation(out)) is not None


@pytest.mark.parametrize(
    ("result", "dtype"),
    [
        ("torch.round(x * 1.1).to(torch.int16)", torch.int16),
        ("torch.round(x * 1.1)", torch.float32),
        ("(x * 1.1).round_() / 4096 + 1", None),
    ],
)
def test_every_value_beside_a_tie_may_fall_either_way(truth_of, result, dtype):
    truth, x = truth_of(result)
    out = other_side(x)
    out = (out / 4096 + 1).float() if dtype is None else out.to(dtype)
    assert int((out.double() != truth.value).sum()) > 100
    assert accepted(truth, out)


def test_a_comparison_within_rounding_may_fall_either_way(truth_of):
    truth, _ = truth_of("x * 1.1 > (torch.arange(len(x)) % 90 + 0.5)")
    out = truth.value.clone()
    out[:NEAR].logical_not_()
    assert accepted(truth, out)
    out[NEAR + 5].logical_not_()
    assert not accepted(truth, out)


@pytest.mark.parametrize(("place", "off"), [(NEAR + 7, 1), (3, 2)])
def test_other_codes_must_be_right_and_none_is_off_by_two(truth_of, place, off):
    truth, _ = truth_of("torch.round(x * 1.1).to(torch.int32)")
    out = truth.value.clone()
    assert accepted(truth, out)
    out[place] += off
    assert not accepted(truth, out)


def test_exact_whole_numbers_and_exact_comparisons_have_no_ties(truth_of):
    for result in ("torch.round(x).round().int() * 0 + x.sign().int()", "(x > x) | (x >= x)"):
        truth, _ = truth_of(result)
        out = truth.value.clone()
        place = int((truth.value != 0).nonzero()[-1])
        out[place] = 0
        assert not accepted(truth, out)
