"""Truths of whole references, and what they make of outputs that are nearly right."""

from __future__ import annotations

import functools
import math
import textwrap

import pytest
import torch
import torch.nn.functional as F

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Checks, Problem
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance
from fast_set import of_which_fast

HEADER = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@pytest.fixture(scope="module")
def truths_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("references")

    @functools.cache
    def truths_of(source, precision="fp32", target=None):
        source, language = HEADER + textwrap.dedent(source), "triton" if target else "cpp"
        problem = Problem(
            "example", source, language, "cpu", checks=Checks(precision), target=target
        )
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


@pytest.mark.parametrize("name", of_which_fast(LARGE, "a product", "scattered giants"))
class TestOneWrongPlace:
    @pytest.fixture
    def case(self, truths_of, name):
        truths = truths_of(LARGE[name])
        first = truths.from_problem[0]
        return (
            first.truths[0],
            first.truths[0].value.float(),
            truths.from_problem[1].truths[0].value,
        )

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
        for checked in truths.from_problem:
            truth = checked.truths[0]
            other_of_the_pair = truth.value.clone()
            other_of_the_pair[:16] ^= 1
            assert truth.classify(truth.deviation(other_of_the_pair)) == "fp32"

    def test_a_clear_maximum_may_not(self, truths_of):
        truth = (
            truths_of(forward("return x.argmax(-1)", "torch.randn(64, 256)"))
            .from_problem[0]
            .truths[0]
        )
        wrong = truth.value.clone()
        wrong[3] += 1
        assert truth.classify(truth.deviation(wrong)) is None

    def test_on_inputs_drawn_later_ties_are_found_anew(self, truths_of):
        pairs = "torch.randn(16, 32).repeat_interleave(2, 1), torch.randn(48, 64)"
        source = forward("return x.argmax(-1)", f"torch.cat([{pairs}])")
        truths = truths_of(source)
        [renewed] = truths.of(truths.from_problem[1].inputs)
        out = renewed.value.clone()
        out[:16] ^= 1
        assert renewed.classify(renewed.deviation(out)) == "fp32"
        out[:16] += 2
        assert renewed.classify(renewed.deviation(out)) is None

    def test_on_inputs_drawn_later_the_same_precision_is_asked_for(self, truths_of):
        truths = truths_of(forward("return x @ x.t()", "torch.randn(64, 64)"))
        [renewed] = truths.of(truths.from_problem[2].inputs)
        value = renewed.value
        assert renewed.classify(renewed.deviation(value.float())) == "fp32"
        assert renewed.classify(renewed.deviation(value.bfloat16())) is None


def from_the_back(x, count=None, *, descending=True):
    """Values and indices of sorted rows, the last of equal ones first."""
    found = torch.sort(x.flip(-1), dim=-1, descending=descending, stable=True)
    return found.values[..., :count], x.shape[-1] - 1 - found.indices[..., :count]


CLIPPED = "F.hardtanh(4 * x)"
FEW = "torch.randint(0, 8, (64, 128)).float()"
OTHER_CHOICES = {
    "clipped": (f"torch.topk({CLIPPED}, 4)", lambda x: from_the_back(F.hardtanh(4 * x), 4)),
    "saturated": (
        "torch.topk(torch.sigmoid(12 * x), 4)",
        lambda x: from_the_back(torch.sigmoid(12 * x), 4),
    ),
    "underflowing": (
        "torch.topk(torch.softmax(200 * x, -1), 64)",
        lambda x: from_the_back(torch.softmax(200 * x, -1), 64),
    ),
    "masked": (
        "torch.topk(torch.where(x > 0, x, -torch.inf), 96)",
        lambda x: from_the_back(torch.where(x > 0, x, -torch.inf), 96),
    ),
    "a slice, as int32": (
        "torch.relu(x).sort(-1)[1][:, 3:40:2].int()",
        lambda x: (from_the_back(torch.relu(x), descending=False)[1][:, 3:40:2].int(),),
    ),
    "argsort, transposed": (
        "torch.relu(x).argsort(-1).t()",
        lambda x: (from_the_back(torch.relu(x), descending=False)[1].t(),),
    ),
    "minimum along the first axis": (
        "torch.relu(x).min(0)",
        lambda x: (torch.relu(x).amin(0), from_the_back(torch.relu(x).t(), 1, descending=False)[1]),
    ),
    "of all": (f"{CLIPPED}.argmax()", lambda x: (from_the_back(F.hardtanh(4 * x).ravel(), 1)[1],)),
}


class TestOtherChoices:
    """Indices of elements that are equal to those which the reference points at."""

    def verdicts(self, truths, candidate):
        for checked in truths.sets:
            outs = candidate(checked.inputs.args[0])
            for truth, out in zip(checked.truths, outs, strict=True):
                found = truth.deviation(out.reshape(truth.value.shape))
                yield checked.name, truth.classify(found)

    @pytest.mark.parametrize(
        ("body", "candidate"), OTHER_CHOICES.values(), ids=OTHER_CHOICES.keys()
    )
    def test_are_right(self, truths_of, body, candidate):
        truths = truths_of(forward(f"return {body}", "torch.randn(64, 128)"))
        assert len(truths.sets) == 9
        assert all(found == "fp32" for _, found in self.verdicts(truths, candidate))

    def test_are_right_where_only_the_problem_can_draw_its_inputs(self, truths_of):
        truths = truths_of(forward("return x.argmax(-1, keepdim=True)", FEW))
        found = list(self.verdicts(truths, lambda x: (from_the_back(x, 1)[1],)))
        assert found == [(f"own-{i}", "fp32") for i in range(3)]

    def test_are_right_in_half_precision_for_what_that_rounds_to_equal(self, truths_of):
        truths = truths_of(forward("return x.argmin(-1)", "torch.randn(64, 128)"), "half")
        for candidate in (
            lambda x: (x.bfloat16().argmin(-1),),
            lambda x: (from_the_back(x.bfloat16(), 1, descending=False)[1],),
        ):
            assert all(found == "fp32" for _, found in self.verdicts(truths, candidate))

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda right: torch.arange(4).repeat(64, 1),
            lambda right: right[:, :1].repeat(1, 4),
            lambda right: right.roll(1, 0),
            lambda right: right + 128,
            lambda right: right - 128,
            lambda right: torch.full_like(right, torch.iinfo(torch.int64).min),
        ],
        ids=["any", "one for all", "of another row", "beyond", "negative", "nothing written"],
    )
    def test_others_are_wrong_and_so_is_one_twice_or_beyond_the_row(self, truths_of, wrong):
        truths = truths_of(forward(f"return torch.topk({CLIPPED}, 4)", "torch.randn(64, 128)"))
        for checked in truths.from_problem:
            indices = checked.truths[1]
            assert indices.classify(indices.deviation(wrong(indices.value))) is None

    def test_one_wrong_index_among_equals_is_wrong(self, truths_of):
        truths = truths_of(forward("return torch.relu(x).argsort(-1)", "torch.randn(64, 128)"))
        for checked in truths.from_problem:
            truth = checked.truths[0]
            out = from_the_back(torch.relu(checked.inputs.args[0]), descending=False)[1]
            out[7, 0], out[7, -1] = out[7, -1].clone(), out[7, 0].clone()
            assert truth.classify(truth.deviation(out)) is None

    def test_a_fraction_of_an_index_is_wrong(self, truths_of):
        body, inputs = "return torch.relu(x).argsort(-1).float()", "torch.randn(64, 128)"
        truths = truths_of(forward(body, inputs))
        [truth], x = truths.from_problem[0].truths, truths.from_problem[0].inputs.args[0]
        indices = from_the_back(torch.relu(x), descending=False)[1].float()
        assert truth.classify(truth.deviation(indices)) == "fp32"
        assert truth.classify(truth.deviation(indices + 0.25)) is None

    def test_a_stable_sort_is_held_to_its_order(self, truths_of):
        source = "return torch.sort(torch.relu(x), dim=-1, stable=True)[1]"
        truths = truths_of(forward(source, "torch.randn(64, 128)"))
        found = dict(
            self.verdicts(truths, lambda x: (from_the_back(torch.relu(x), descending=False)[1],))
        )
        assert found["own-0"] is None

    def test_amplified_noise_leaves_no_choice(self, truths_of):
        truths = truths_of(forward("return torch.sin(3e3 * x).argmax(-1)", "torch.randn(64, 128)"))
        truth = truths.from_problem[0].truths[0]
        assert truth.classify(truth.deviation((truth.value + 1) % 128)) is None

    def test_what_is_made_of_them_may_be_another_too(self, truths_of):
        truths = truths_of(forward("return F.one_hot(x.argmax(-1), 128)", FEW))
        right = [F.one_hot(from_the_back(s.inputs.args[0], 1)[1][:, 0], 128) for s in truths.sets]
        for checked, out in zip(truths.sets, right, strict=True):
            truth = checked.truths[0]
            assert truth.classify(truth.deviation(out)) == "fp32"
            assert truth.classify(truth.deviation(out.roll(1, 1))) is None

    def test_a_reference_that_writes_to_what_it_selected_from_is_compared_as_it_is(self, truths_of):
        body = "y = x.clone(); i = y.argmax(-1); y[:] = 0; return i"
        truth = truths_of(forward(body, "torch.randn(64, 128)")).from_problem[0].truths[0]
        assert truth.classify(truth.deviation(truth.value)) == "fp32"
        assert truth.classify(truth.deviation((truth.value + 1) % 128)) is None


class TestSets:
    def test_the_output_whose_size_depends_on_the_data_is_named(self, truths_of):
        with pytest.raises(
            BadProblemError, match=r"output\[1\] has the shape \(\d+,\) on one draw"
        ):
            truths_of(forward("return x + 1, x[x > 0]", "torch.randn(8, 8)"))

    def test_a_reference_whose_kernels_compile_for_no_float64_is_compared_as_it_is(self, truths_of):
        no_float64 = "if x.dtype is torch.float64: raise NotForFloat64\n        return x * x"
        source = "class NotForFloat64(Exception): ..." + forward(no_float64, "torch.randn(8, 64)")
        [truth] = truths_of(source).from_problem[0].truths
        x = truths_of(source).from_problem[0].inputs.args[0]
        assert truth.classify(truth.deviation(x * x)) == "fp32"
        assert truth.classify(truth.deviation(1.01 * x * x)) is None

    def test_a_distribution_that_is_illegal_for_the_problem_is_left_out(self, truths_of):
        sets = truths_of(forward("return x.log()", "torch.rand(64, 64)")).sets
        named = {s.name: s.inputs.args[0] for s in sets}
        assert "negative" not in named
        assert {"own-2", "normal", "large"} <= named.keys()
        assert all(bool((x > 0).all()) for x in named.values())  # positive ones stand for them

    def test_only_inputs_of_its_own_kind_where_others_break_an_assertion(self, truths_of):
        instance, notes = truths_of(PLAIN)._runs.instance, []
        runs = ReferenceRuns(truths_of(PLAIN)._runs.problem, instance, instance.inputs(0))
        assert [s.name for s in Truths(runs, notes, own_only=True).sets] == [
            "own-0",
            "own-1",
            "own-2",
        ]
        assert any("inputs of its own kind only" in note for note in notes)

    def test_milder_values_stand_for_those_that_overflow(self, truths_of):
        sets = truths_of(forward("return (2 * x).exp()", "torch.rand(64, 64)")).sets
        [large] = [s.inputs.args[0] for s in sets if s.name == "large"]
        assert 3 < float(large.max()) < 60

    def test_a_reference_that_handles_nan_is_given_some(self, truths_of):
        def names(body):
            return {s.name for s in truths_of(forward(body, "torch.rand(64, 64)")).sets}

        assert "holes" in names("return torch.nanmean(x, -1)")
        assert "holes" not in names("return x.mean(-1)")
        assert "holes" not in names("return torch.nansum(x, -1) + x[0]")  # has NaN left
        assert "holes" not in names("return torch.nan_to_num(x.softmax(-1))")  # its own

    def test_a_triangular_input_stays_triangular(self, truths_of):
        truths = truths_of(forward("return x @ x", "torch.randn(64, 64).tril()"))
        for checked in truths.sets:
            x = checked.inputs.args[0]
            assert torch.equal(x, x.tril()), checked.name

    def test_rounding_noise_is_no_truth(self, truths_of):
        source = forward("return F.layer_norm(x, (256,)).mean(-1)", "torch.randn(64, 256)")
        with pytest.raises(BadProblemError, match="nothing can be verified"):
            truths_of(source)

    def test_a_class_in_which_pytorch_itself_is_far_off_is_refused_in_one_line(self, truths_of):
        source = PLAIN.replace("return x @ self.w", "return torch.sin(300 * (x @ self.w))")
        assert truths_of(source).from_problem
        with pytest.raises(BadProblemError, match=r"class half is off by .* use --precision tf32"):
            truths_of(source, "half")


class TestOtherWeights:
    def test_they_differ_and_so_do_the_truths(self, truths_of):
        truths = truths_of(PLAIN)
        other = truths.other_weights
        assert other is not None
        w = other.parameters["w"].tensor
        assert not torch.equal(w, truths._runs.instance.model.w)
        out = truths.from_problem[0].inputs.args[0] @ w
        truth = other.truths[0]
        assert truth.classify(truth.deviation(out)) == "fp32"
        stale = truths.from_problem[0].truths[0].value
        assert truth.classify(truth.deviation(stale)) is None

    @pytest.mark.parametrize(
        "init", ["", "self.w = nn.Parameter(torch.ones(3))", "self.norm = nn.BatchNorm1d(8)"]
    )
    def test_there_are_none_where_a_seed_changes_nothing(self, truths_of, init):
        body = "return getattr(self, 'norm', torch.relu)(x)"
        assert truths_of(forward(body, "torch.randn(8, 8)", init)).other_weights is None


class TestMovedConstants:
    def test_what_a_zero_hides_is_in_the_truth(self, truths_of):
        init = "self.w = nn.Parameter(torch.randn(8, 8))\nself.gate = nn.Parameter(torch.zeros(8))"
        truths = truths_of(
            forward("return x + self.gate * (x @ self.w)", "torch.randn(8, 8)", init)
        )
        constants = truths.moved_constants
        assert list(constants.values) == ["gate"]
        [x] = truths.from_problem[0].inputs.args
        w = truths.other_weights.parameters["w"].tensor
        [truth] = constants.truths
        followed = x + constants.values["gate"].tensor * (x @ w)
        assert truth.classify(truth.deviation(followed)) == "fp32"
        assert truth.classify(truth.deviation(x)) is None

    def test_what_a_call_counts_is_none(self, truths_of):
        truths = truths_of(
            forward("return self.norm(x)", "torch.randn(8, 8)", "self.norm = nn.BatchNorm1d(8)")
        )
        assert "norm.weight" in truths.moved_constants.values
        assert "norm.num_batches_tracked" not in truths.moved_constants.values

    @pytest.mark.parametrize(
        ("body", "init"),
        [
            ("return x @ self.w", "self.w = nn.Parameter(torch.randn(8, 8))"),
            ("return 0.5 * x * self.s", "self.register_buffer('s', torch.tensor(0.5))"),
            ("return torch.relu(x)", "self.unused = nn.Parameter(torch.zeros(8))"),
        ],
    )
    def test_there_are_none_where_no_constant_shows(self, truths_of, body, init):
        assert truths_of(forward(body, "torch.randn(8, 8)", init)).moved_constants is None


class TestBlindClasses:
    BARELY = forward(
        "return 1 + 1e-4 * torch.tanh(x @ self.w)",
        "torch.randn(64, 64)",
        "self.w = nn.Parameter(torch.randn(64, 64) / 8)",
    )

    def test_a_class_in_which_a_constant_would_pass_is_not_on_offer(self, truths_of):
        truths = truths_of(self.BARELY, precision="half")
        for checked in truths.from_problem:
            truth = checked.truths[0]
            assert truth.classify(truth.deviation(truth.value.float())) == "fp32"
            constant = torch.ones_like(truth.value)
            assert truth.classify(truth.deviation(constant)) is None

    def test_neither_is_it_on_inputs_drawn_later(self, truths_of):
        truths = truths_of(self.BARELY, precision="half")
        [renewed] = truths.of(truths.from_problem[1].inputs)
        assert set(renewed.bounds) == {"fp32"}
        constant = torch.ones_like(renewed.value)
        assert renewed.classify(renewed.deviation(constant)) is None

    def test_a_class_in_which_it_would_not_is(self, truths_of):
        truths = truths_of(PLAIN, precision="half")
        assert "half" in truths.from_problem[0].truths[0].bounds

    def test_a_class_stays_where_pytorch_s_own_run_is_nearer_than_a_constant(self, truths_of):
        truths = truths_of(self.BARELY.replace("1e-4", "7e-3"), precision="half")
        narrowed = [checked.truths[0] for checked in truths.from_problem]
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
        for checked in truths.from_problem:
            x, truth = rounded(checked.inputs.args[0], kept), checked.truths[0]
            found = truth.deviation(torch.clamp(x.double() @ weight.double() - 2.5, min=0.0))
            assert found.norm > 2.0**-8
            assert truth.classify(found) == reached

    CANCELLING_ROWS = forward("return x[:2048] - x[2048:]", "torch.randn(4096, 64)")

    def test_in_a_row_that_nearly_cancels_all_numbers_are_sensitive(self, truths_of):
        truths = truths_of(self.CANCELLING_ROWS, precision="half")
        [checked] = [each for each in truths.sets if each.name == "constant-rows"]
        x, truth = rounded(checked.inputs.args[0], 7).double(), checked.truths[0]
        out = x[:2048] - x[2048:]
        assert truth.deviation(out).element < 0.1
        out[:64, :8] = 0.0  # rows that do not cancel count in full
        assert truth.classify(truth.deviation(out)) is None

    STEPS_IN_MANY_ROWS = forward(
        "return x + (x > 0.1)",
        "torch.cat([torch.cat([0.1 + 1e-4 * torch.randn(100, 8), torch.rand(100, 56)], 1), "
        "torch.rand(924, 64)])",
    )

    def test_rows_that_would_be_too_many_are_compared(self, truths_of):
        truths = truths_of(self.STEPS_IN_MANY_ROWS, precision="half")
        for checked in truths.from_problem:
            (truth,) = checked.truths
            assert 0.007 < truth.ties.double().mean() < 0.02
            out = truth.value.clone()
            out[:100, 8:] = 0.0
            assert truth.classify(truth.deviation(out)) is None

    STEEP_IN_PLACES = forward(
        "return x[..., 0] - x[..., 1]",
        "torch.cat([1 + 0.01 * torch.rand(12, 64, 2), torch.rand(1012, 64, 2)])",
    )

    def test_where_rounding_the_operands_moves_few_elements_far_those_may_move(self, truths_of):
        truths = truths_of(self.STEEP_IN_PLACES, precision="tf32", target="sm_90")
        for checked in truths.from_problem:
            (truth,) = checked.truths
            x = rounded(checked.inputs.args[0], 10).double()
            assert truth.classify(truth.deviation(x[..., 0] - x[..., 1])) == "tf32"
            out = truth.value.clone()
            out[12:16, 16:32] = 0.0
            assert truth.classify(truth.deviation(out)) is None


def rounded(tensor, bits):
    """To nearest, with so many bits of mantissa (7 are bfloat16's)."""
    dropped = 23 - bits
    whole = tensor.view(torch.int32) + (1 << (dropped - 1))
    return (whole & -(1 << dropped)).view(torch.float32)
