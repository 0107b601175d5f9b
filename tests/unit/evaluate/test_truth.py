"""Truths of whole references, and what they make of outputs that are nearly right."""

from __future__ import annotations

import functools
import math
import textwrap

import pytest
import torch

from adaexplore.errors import BadProblemError
from adaexplore.evaluate.runs import ReferenceRuns
from adaexplore.evaluate.truth import Truths
from adaexplore.problem import Problem
from adaexplore.sandbox.instance import Instance

HEADER = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@pytest.fixture(scope="module")
def truths_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("references")

    @functools.cache
    def truths_of(source, precision="fp32"):
        source = HEADER + textwrap.dedent(source)
        problem = Problem("example", source, "cpp", "cpu", precision=precision)
        instance = Instance.load(
            source, "Model", device="cpu", seed=0, mode="as-built", folder=folder
        )
        return Truths(ReferenceRuns(problem, instance, instance.inputs(0)), [])

    return truths_of


def forward(body, inputs, init=""):
    """The source of a reference."""
    init = textwrap.indent(init or "pass", " " * 8)
    return f"""
class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, x):
        {body}

def get_inputs():
    return [{inputs}]
"""


ROWS_OF_EVERY_SIZE = forward(
    "return (x @ self.w) * self.scale",
    "torch.randn(512, 64)",
    "self.w = nn.Parameter(torch.randn(64, 512))\n"
    "self.scale = nn.Parameter(torch.logspace(-3, 3, 512)[:, None])",
)
SCATTERED_GIANTS = forward(
    "return torch.where(torch.arange(1 << 18).view(512, 512) % 4099 == 0, 1e5 * x, x) + 1",
    "torch.randn(512, 512)",
)
PLAIN = forward(
    "return x @ self.w", "torch.randn(1024, 64)", "self.w = nn.Parameter(torch.randn(64, 1024))"
)
SOFTMAX = forward("return torch.softmax(8 * x, -1)", "torch.randn(512, 512)")
FLAT = forward("return torch.tanh(x)", "torch.randn(1 << 18)")
LARGE = {
    "a product": PLAIN,
    "rows of every size": ROWS_OF_EVERY_SIZE,
    "scattered giants": SCATTERED_GIANTS,
    "softmax": SOFTMAX,
    "one axis": FLAT,
}


def square(t):
    return t.view(math.isqrt(t.numel()), -1)


@pytest.mark.parametrize("source", LARGE.values(), ids=LARGE.keys())
class TestOneWrongPlace:
    @pytest.fixture
    def case(self, truths_of, source):
        truths = truths_of(source)
        first = truths.own[0]
        return first.truths[0], first.truths[0].value.float(), truths.own[1].truths[0].value

    def verdict(self, truth, out):
        return truth.classify(truth.deviation(out))

    def test_the_rounded_truth_is_right(self, case):
        truth, out, _ = case
        assert self.verdict(truth, out) == "fp32"

    def test_a_tile_of_zeros_is_wrong_wherever_it_lies(self, case):
        truth, right, _ = case
        for row, column in ((0, 0), (256, 128), (496, 496)):
            out = right.clone()
            square(out)[row : row + 16, column : column + 16] = 0
            assert self.verdict(truth, out) is None

    def test_a_tile_of_another_inputs_output_is_wrong(self, case):
        truth, right, other = case
        out = right.clone()
        square(out)[0:16, 32:48] = square(other.float())[0:16, 32:48]
        assert self.verdict(truth, out) is None

    def test_a_last_row_left_out_is_wrong(self, case):
        truth, right, _ = case
        out = right.clone()
        square(out)[-1] = 0
        assert self.verdict(truth, out) is None

    def test_one_element_that_is_off_by_a_tenth_is_wrong(self, case):
        truth, right, _ = case
        out = right.clone()
        row = square(out)[3]
        row[(row.abs() - 0.1 * row.abs().max()).abs().argmin()] *= 1.1
        assert self.verdict(truth, out) is None


class TestHonestRounding:
    def test_a_product_summed_in_another_order_passes(self, truths_of):
        truths = truths_of(PLAIN)
        model = truths._runs.instance.model
        for checked in truths.sets:
            x, w = checked.inputs.args[0], model.w.detach()
            halves = x[:, :32] @ w[:32] + x[:, 32:] @ w[32:]
            found = checked.truths[0].deviation(halves)
            assert checked.truths[0].classify(found) == "fp32", checked.name

    def test_a_normalisation_by_another_formula_passes_on_constant_rows_too(self, truths_of):
        truths = truths_of(forward("return F.layer_norm(x, (256,))", "torch.randn(64, 256)"))
        assert len(truths.sets) > 5
        for checked in truths.sets:
            x = checked.inputs.args[0]
            mean = x.cumsum(-1)[:, -1:] / 256
            variance = ((x - mean) ** 2).cumsum(-1)[:, -1:] / 256
            found = checked.truths[0].deviation((x - mean) * torch.rsqrt(variance + 1e-5))
            assert checked.truths[0].classify(found) == "fp32", checked.name

    def test_a_near_tie_may_fall_either_way(self, truths_of):
        pairs = "torch.randn(16, 32).repeat_interleave(2, 1), torch.randn(48, 64)"
        truths = truths_of(forward("return x.argmax(-1)", f"torch.cat([{pairs}])"))
        for checked in truths.own:
            truth = checked.truths[0]
            other_of_the_pair = truth.value.clone()
            other_of_the_pair[:16] ^= 1
            assert truth.classify(truth.deviation(other_of_the_pair)) == "fp32"

    def test_a_clear_maximum_may_not(self, truths_of):
        truth = truths_of(forward("return x.argmax(-1)", "torch.randn(64, 256)")).own[0].truths[0]
        wrong = truth.value.clone()
        wrong[3] += 1
        assert truth.classify(truth.deviation(wrong)) is None

    def test_on_inputs_drawn_later_ties_are_found_anew(self, truths_of):
        pairs = "torch.randn(16, 32).repeat_interleave(2, 1), torch.randn(48, 64)"
        source = forward("return x.argmax(-1)", f"torch.cat([{pairs}])")
        truths = truths_of(source)
        [renewed] = truths.of(truths.own[1].inputs)
        assert renewed.ties is not None
        out = renewed.value.clone()
        out[renewed.ties] += 1
        assert renewed.classify(renewed.deviation(out)) == "fp32"
        out[:] += 1
        assert renewed.classify(renewed.deviation(out)) is None

    def test_on_inputs_drawn_later_the_same_precision_is_asked_for(self, truths_of):
        truths = truths_of(forward("return x @ x.t()", "torch.randn(64, 64)"))
        [renewed] = truths.of(truths.own[2].inputs)
        value = renewed.value
        assert renewed.classify(renewed.deviation(value.float())) == "fp32"
        assert renewed.classify(renewed.deviation(value.bfloat16())) is None


class TestSets:
    def test_a_distribution_that_is_illegal_for_the_problem_is_left_out(self, truths_of):
        names = {s.name for s in truths_of(forward("return x.log()", "torch.rand(64, 64)")).sets}
        assert "negative" not in names
        assert "normal" not in names
        assert "own-2" in names

    def test_a_triangular_input_stays_triangular(self, truths_of):
        truths = truths_of(forward("return x @ x", "torch.randn(64, 64).tril()"))
        for checked in truths.sets:
            x = checked.inputs.args[0]
            assert torch.equal(x, x.tril()), checked.name

    def test_rounding_noise_is_no_truth(self, truths_of):
        source = forward("return F.layer_norm(x, (256,)).mean(-1)", "torch.randn(64, 256)")
        with pytest.raises(BadProblemError, match="nothing can be verified"):
            truths_of(source)


class TestOtherWeights:
    def test_they_differ_and_so_do_the_truths(self, truths_of):
        truths = truths_of(PLAIN)
        other = truths.other_weights
        assert other is not None
        w = other.parameters["w"].tensor
        assert not torch.equal(w, truths._runs.instance.model.w)
        out = truths.own[0].inputs.args[0] @ w
        truth = other.truths[0]
        assert truth.classify(truth.deviation(out)) == "fp32"
        stale = truths.own[0].truths[0].value
        assert truth.classify(truth.deviation(stale)) is None

    @pytest.mark.parametrize(
        "init", ["", "self.w = nn.Parameter(torch.ones(3))", "self.norm = nn.BatchNorm1d(8)"]
    )
    def test_there_are_none_where_a_seed_changes_nothing(self, truths_of, init):
        body = "return getattr(self, 'norm', torch.relu)(x)"
        assert truths_of(forward(body, "torch.randn(8, 8)", init)).other_weights is None


class TestBlindClasses:
    BARELY = forward(
        "return 1 + 1e-4 * torch.tanh(x @ self.w)",
        "torch.randn(64, 64)",
        "self.w = nn.Parameter(torch.randn(64, 64) / 8)",
    )

    def test_a_class_in_which_a_constant_would_pass_is_not_on_offer(self, truths_of):
        truths = truths_of(self.BARELY, precision="half")
        for checked in truths.own:
            truth = checked.truths[0]
            assert truth.classify(truth.deviation(truth.value.float())) == "fp32"
            constant = torch.ones_like(truth.value)
            assert truth.classify(truth.deviation(constant)) is None

    def test_a_class_in_which_it_would_not_is(self, truths_of):
        truths = truths_of(PLAIN, precision="half")
        assert "half" in truths.own[0].truths[0].bounds

    def test_a_class_stays_where_pytorch_s_own_run_is_nearer_than_a_constant(self, truths_of):
        truths = truths_of(self.BARELY.replace("1e-4", "7e-3"), precision="half")
        narrowed = [checked.truths[0] for checked in truths.own]
        for truth in narrowed:
            rounded = truth.value.to(torch.bfloat16).float()
            assert truth.classify(truth.deviation(rounded)) == "half"
        constants = [t.classify(t.deviation(torch.ones_like(t.value))) for t in narrowed]
        assert None in constants


class TestOtherAlgorithms:
    """Autocast leaves this product in float32: PyTorch's own run says nothing of half precision."""

    LITTLE_LEFT = forward(
        "return torch.clamp((x[:, :, None] * self.w).sum(1) - 2.5, min=0.0)",
        "torch.randn(128, 128)",
        "self.w = nn.Parameter(torch.randn(128, 128) / 128 ** 0.5)",
    )

    @pytest.mark.parametrize(("kept", "reached"), [(7, "half"), (3, None)])
    def test_rounding_the_operands_is_allowed_where_little_is_left_of_the_product(
        self, truths_of, kept, reached
    ):
        truths = truths_of(self.LITTLE_LEFT, precision="half")
        weight = rounded(truths._runs.instance.model.w.detach(), kept)
        for checked in truths.own:
            x, truth = rounded(checked.inputs.args[0], kept), checked.truths[0]
            found = truth.deviation(torch.clamp(x.double() @ weight.double() - 2.5, min=0.0))
            assert found.norm > 2.0**-8
            assert truth.classify(found) == reached


def rounded(tensor, bits):
    """To nearest, with so many bits of mantissa (7 are bfloat16's)."""
    dropped = 23 - bits
    whole = tensor.view(torch.int32) + (1 << (dropped - 1))
    return (whole & -(1 << dropped)).view(torch.float32)
