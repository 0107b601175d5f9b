"""Values that lie within rounding of a step may fall either way, all of them and no others."""

import pytest
import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.steps import Shifted, Steps
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


def test_unsigned_codes_beside_a_tie_may_be_off_by_one(truth_of):
    truth, x = truth_of("torch.round((x * 1.1).abs()).to(torch.uint16)")
    out = other_side(x.abs()).to(torch.uint16)
    assert accepted(truth, out)
    out[NEAR + 7] = 1000
    assert not accepted(truth, out)


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


@pytest.mark.parametrize(
    ("result", "most"),
    [
        ("torch.div(x * 1.1 + 0.5, 1.0, rounding_mode='floor')", 1e-4),
        ("torch.remainder(x * 1.1 + 0.5, 0.3)", 2e-2),
        ("torch.remainder(3, x / 30)", 2e-2),  # quotients by numbers near zero
        ("(x * 1.1 + 0.5).floor_()", 1e-4),
        ("torch.fake_quantize_per_tensor_affine(x * 1.1, 1.0, 0, -128, 127)", 1e-4),
        ("(x * 1.1).to(torch.complex64).real", 1e-4),
    ],
)
def test_what_falls_the_other_way_in_pytorch_s_own_run_widens_no_bound(truth_of, result, most):
    truth, _ = truth_of(result)
    assert truth.bounds["fp32"].element < most


VALUES = torch.tensor([0.5, 1.5, -2.5, 3.25], dtype=torch.float64)


def filled(dtype):
    return lambda x: torch.zeros(4, dtype=dtype).copy_(x)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: torch.div(x, 0.5, rounding_mode="trunc"),
        lambda x: x // 0.5,
        lambda x: x % 0.5,
        lambda x: torch.fmod(x, torch.full((4,), 0.5)),
        lambda x: torch.frac(2 * x),
        lambda x: (2 * x).frac_(),
        lambda x: x.clone().remainder_(0.5),
        lambda x: x.clone().floor_divide_(0.5),
        lambda x: x.clone().div_(0.5, rounding_mode="floor"),
        lambda x: (x - 1.5).sgn(),
        lambda x: (x - 1.5).sign_(),
        lambda x: torch.nn.functional.hardshrink(x, 1.5),
        lambda x: torch.nn.functional.threshold(x, 1.5, 9.0),
        lambda x: torch.nn.functional.threshold_(x.clone(), 1.5, 9.0),
        lambda x: torch.heaviside(x - 1.5, torch.ones((), dtype=x.dtype)),
        lambda x: (x - 1.5).heaviside_(torch.ones((), dtype=x.dtype)),
        lambda x: torch.copysign(torch.ones_like(x), x - 1.5),
        lambda x: torch.ones_like(x).copysign_(x - 1.5),
        lambda x: torch.remainder(3.0, x),
        lambda x: torch.searchsorted(VALUES.sort().values, x),
        filled(torch.int8),
    ],
)
def test_a_shifted_operation_differs_beside_its_steps_alone(operation):
    with torch.no_grad():
        with (steps := Steps()):
            plain = operation(VALUES)
        [value] = steps.values
        shifts = [torch.zeros(4), *(torch.full((4,), by) for by in (1e-9, 0.6))]
        shifted = []
        for by in shifts:
            for side in (1, -1):
                with Shifted([by.double()], side):
                    shifted.append(operation(VALUES))
    assert value.shape == (4,)
    assert torch.equal(shifted[0], plain)
    assert torch.equal(shifted[1], plain)
    assert any(not torch.equal(each, plain) for each in shifted[2:])
    assert plain.dtype == shifted[-1].dtype


def test_the_difference_decides_a_comparison():
    with torch.no_grad(), (steps := Steps()):
        torch.gt(VALUES, 1.5)
    assert torch.equal(steps.values[0], VALUES - 1.5)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: torch.div(x, 0.5),
        lambda x: torch.div(x, 0.5, rounding_mode=None),
        lambda x: x.to(torch.complex64),
        filled(torch.float32),
    ],
)
def test_what_is_continuous_is_no_step(operation):
    with torch.no_grad(), (steps := Steps()):
        operation(VALUES)
    assert steps.values == []
