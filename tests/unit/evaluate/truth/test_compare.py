import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.problem import Likeness
from adaexplore.evaluate.truth.compare import (
    LOOSEST,
    Deviation,
    Truth,
    bounds_from,
    deviation,
    exact,
    near,
    unlikeness,
)
from adaexplore.evaluate.truth.precision import FLOOR

INFINITE = Deviation(math.inf, math.inf, math.inf)

numbers = st.integers(-(10**9), 10**9).map(lambda thousandths: thousandths / 1000)
truths = st.lists(numbers, min_size=1, max_size=50).map(
    lambda values: torch.tensor(values, dtype=torch.float64)
)


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def strict_bounds(truth, run):
    """What fp32 allows where PyTorch's own run is `run`."""
    return bounds_from({"fp32": deviation(run, truth)}, FLOOR)


class TestUnlikeness:
    BOUND = Likeness(cosine=0.9, l1=0.1, rmse=0.5, source="SomeBench")

    def missed(self, out, expected):
        return unlikeness(out, Truth("output", expected, {}), self.BOUND)

    def test_an_output_like_the_truth_misses_nothing(self):
        assert self.missed(double(1.0, 2.1), double(1.0, 2.0)) == ""
        assert self.missed(double(0.0, 0.0), double(0.0, 0.0)) == ""

    @pytest.mark.parametrize(
        ("out", "expected", "said"),
        [
            ((1.0, -1.0), (1.0, 1.0), "cosine 0 (at least 0.9)"),
            ((1.3, 1.0), (1.0, 1.0), "relative L1 0.15 (at most 0.1)"),
            ((101.0, 100.0), (100.0, 100.0), "RMSE 0.71 (at most 0.5)"),
            ((0.0, 0.0), (0.1, 0.1), "cosine 0 "),
            ((math.nan, 1.0), (1.0, 1.0), "RMSE nan"),
            ((math.inf, 1.0), (1.0, 1.0), "RMSE inf"),
            ((0.0, 1.0), (math.inf, 1.0), "RMSE inf"),
        ],
    )
    def test_each_bound_may_be_missed(self, out, expected, said):
        why = self.missed(double(*out), double(*expected))
        assert said in why
        assert "less like the reference's than SomeBench asks" in why

    def test_what_is_infinite_or_nan_as_it_should_be_does_not_count(self):
        expected = double(math.inf, math.nan, 1.0)
        assert self.missed(expected.clone(), expected) == ""

    def test_integers_are_not_compared_so(self):
        assert self.missed(torch.tensor([1]), torch.tensor([5])) == ""


class TestDeviation:
    def test_by_hand(self):
        # ‖(0, 0, 0.5)‖ / ‖(1, 2, 2)‖ = 0.5 / 3; |x| + 1.02 typical sizes + 0.01 of the largest
        found = deviation(double(1.0, 2.0, 2.5), double(1.0, 2.0, 2.0))
        assert found.norm == pytest.approx(0.5 / 3)
        assert found.element == pytest.approx(0.5 / (2 + 2.04 + 0.02))
        assert found.absolute == 0.5

    def test_zeros_are_off_by_one(self):
        assert deviation(torch.zeros(3), double(1.0, 2.0, 2.0)).norm == pytest.approx(1.0)

    def test_against_zeros_the_error_is_absolute(self):
        found = deviation(double(0.3, 0.0, 0.0, -0.3), torch.zeros(4, dtype=torch.float64))
        assert found.norm == pytest.approx(0.3 / math.sqrt(2))
        assert found.element == pytest.approx(0.3 / 1.03)

    def test_integers_count_unequal_elements(self):
        found = deviation(torch.tensor([1, 2, 3, 9]), torch.tensor([1, 2, 3, 4]))
        assert found == Deviation(0.25, 0.25, 0.25)

    def test_booleans_count_unequal_elements(self):
        found = deviation(torch.tensor([True, True]), torch.tensor([True, False]))
        assert found == Deviation(0.5, 0.5, 0.5)

    @pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
    def test_unsigned_integers_count_unequal_elements(self, dtype):
        truth = torch.tensor([1, 2, 250, 65535]).to(dtype)
        out = torch.tensor([1, 2, 250, 65534]).to(dtype)
        assert deviation(truth, exact(truth)).norm == 0.0
        assert deviation(out, exact(truth)).norm == 0.25
        assert near(truth, truth, Deviation(0.0, 0.0))
        assert not near(out, truth, Deviation(0.0, 0.0))

    def test_complex_numbers_count_as_pairs(self):
        truth = exact(torch.tensor([3 + 4j]))
        assert truth.dtype == torch.float64
        assert deviation(torch.tensor([3 + 4j]), truth) == Deviation(0.0, 0.0)
        assert deviation(torch.tensor([3 - 4j]), truth).norm == pytest.approx(8 / 5)
        assert deviation(torch.tensor([3 - 4j]).conj(), truth).norm == 0.0

    def test_infinities_where_the_truth_has_them_are_right(self):
        truth = double(1.0, math.inf, -math.inf)
        assert deviation(truth.float(), truth) == Deviation(0.0, 0.0)

    @pytest.mark.parametrize("wrong", [1.0, -math.inf, math.nan, torch.finfo(torch.float64).max])
    def test_anything_else_in_place_of_an_infinity_is_wrong(self, wrong):
        assert deviation(double(1.0, wrong), double(1.0, math.inf)) == INFINITE

    def test_a_nan_where_the_truth_has_one_is_right(self):
        truth = double(1.0, math.nan)
        assert deviation(truth, truth) == Deviation(0.0, 0.0)

    def test_a_number_in_place_of_a_nan_is_wrong(self):
        assert deviation(double(1.0, 0.0), double(1.0, math.nan)) == INFINITE

    @given(truth=truths)
    def test_the_truth_itself_is_right(self, truth):
        assert deviation(truth.clone(), truth) == Deviation(0.0, 0.0)

    @given(truth=truths, noise=st.integers(0, 2**31), exponent=st.integers(-30, 30))
    def test_scaling_both_by_a_power_of_two_changes_nothing(self, truth, noise, exponent):
        torch.manual_seed(noise)
        out = truth + torch.randn_like(truth)
        before, after = deviation(out, truth), deviation(out * 2.0**exponent, truth * 2.0**exponent)
        if truth.any():
            assert after.norm == pytest.approx(before.norm)
            assert after.element == pytest.approx(before.element)

    @given(truth=truths, place=st.integers(0, 2**16), bad=st.sampled_from([math.nan, math.inf]))
    def test_one_nan_or_infinity_anywhere_is_infinitely_wrong(self, truth, place, bad):
        out = truth.clone()
        out[place % truth.numel()] = bad
        assert deviation(out, truth) == INFINITE

    @given(truth=truths)
    def test_it_never_changes_what_it_compares(self, truth):
        out, kept = truth + 1, truth.clone()
        deviation(out, truth)
        assert torch.equal(truth, kept)
        assert torch.equal(out, kept + 1)


def approximately(norm, element):
    return Deviation(pytest.approx(norm), pytest.approx(element))


class TestBounds:
    def test_by_hand(self):
        runs = {"fp32": Deviation(1e-6, 3e-6), "half": Deviation(4e-3, 2e-2)}
        bounds = bounds_from(runs, FLOOR)
        # fp32 four times PyTorch's own, half twice; four times as much for a single element.
        assert bounds["fp32"] == approximately(4e-6, 4.8e-5)
        assert bounds["half"] == approximately(8e-3, 0.16)

    def test_where_pytorch_is_exact_a_few_roundings_are_allowed(self):
        exact_in = {p: Deviation(0.0, 0.0) for p in ("fp32", "tf32", "half")}
        bounds = bounds_from(exact_in, FLOOR)
        # Some 16 roundings to 24 bits, one to 11 by truncation, one to 9.
        assert bounds["fp32"] == approximately(2e-6, 8e-6)
        assert bounds["tf32"] == approximately(1 / 1024, 4 / 1024)
        assert bounds["half"] == approximately(1 / 256, 4 / 256)

    def test_no_class_is_looser_than_a_tenth(self):
        runs = {"fp32": Deviation(1e-6, 3e-6), "half": Deviation(0.4, 2.0)}
        bounds = bounds_from(runs, FLOOR)
        assert bounds["half"].norm == LOOSEST == 0.1
        assert bounds["fp32"].norm < 1e-5

    def test_without_a_floor_nothing_is(self):
        bounds = bounds_from({"fp32": Deviation(0.0, 0.0)}, {"fp32": 0.0})
        assert bounds["fp32"] == Deviation(0.0, 0.0)

    @given(
        norms=st.lists(st.floats(0, 1), min_size=3, max_size=3),
        elements=st.lists(st.floats(0, 10), min_size=3, max_size=3),
    )
    def test_a_looser_class_is_never_narrower(self, norms, elements):
        classes = ("fp32", "tf32", "half")
        runs = {c: Deviation(n, e) for c, n, e in zip(classes, norms, elements, strict=True)}
        fp32, tf32, half = bounds_from(runs, FLOOR).values()
        assert fp32.norm <= tf32.norm <= half.norm
        assert fp32.element <= tf32.element <= half.element

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_a_class_in_which_pytorch_overflows_is_not_on_offer(self, bad):
        runs = {"fp32": Deviation(1e-7, 1e-6), "half": Deviation(bad, bad)}
        bounds = bounds_from(runs, FLOOR)
        assert Truth("output", double(1.0), bounds).classify(INFINITE) is None


class TestClassify:
    TRUTH = Truth(
        "output",
        double(1.0),
        {
            "fp32": Deviation(1e-6, 1e-5),
            "tf32": Deviation(1e-3, 1e-2),
            "half": Deviation(1e-2, 0.1),
        },
    )

    @pytest.mark.parametrize(
        ("norm", "element", "expected"),
        [
            (0.0, 0.0, "fp32"),
            (1e-6, 1e-5, "fp32"),
            (2e-6, 1e-5, "tf32"),
            (1e-6, 2e-5, "tf32"),
            (5e-3, 1e-2, "half"),
            (2e-2, 0.0, None),
            (0.0, 0.2, None),
            (math.inf, math.inf, None),
            (math.nan, math.nan, None),
        ],
    )
    def test_the_strictest_class_with_room_for_both(self, norm, element, expected):
        assert self.TRUTH.classify(Deviation(norm, element)) == expected


class TestOnRealArithmetic:
    def test_one_wrong_element_in_a_million_is_caught(self):
        torch.manual_seed(0)
        truth = torch.randn(1000, 1000, dtype=torch.float64)
        run = truth.float()
        out = run.clone()
        out[500, 500] += 1e-3
        found = deviation(out, truth)
        bounds = strict_bounds(truth, run)
        assert found.norm <= bounds["fp32"].norm, "the norm alone does not see it"
        assert Truth("output", truth, bounds).classify(found) is None

    @pytest.mark.parametrize("seed", range(5))
    def test_a_reduction_in_another_order_is_not(self, seed):
        torch.manual_seed(seed)
        x = torch.randn(256, 4096)
        truth = x.double().sum(dim=1)
        one_by_one = torch.stack([*x.unbind(1)]).cumsum(0)[-1]
        in_halves = x
        while in_halves.shape[1] > 1:
            in_halves = in_halves[:, ::2] + in_halves[:, 1::2]
        judge = Truth("output", truth, strict_bounds(truth, x.sum(dim=1)))
        assert judge.classify(deviation(in_halves[:, 0], truth)) == "fp32"
        assert deviation(one_by_one, truth).norm < 1e-5

    @pytest.mark.parametrize("seed", range(5))
    def test_a_product_in_bfloat16_is(self, seed):
        torch.manual_seed(seed)
        a, b = torch.randn(64, 256), torch.randn(256, 64)
        truth = a.double() @ b.double()
        judge = Truth("output", truth, strict_bounds(truth, a @ b))
        assert judge.classify(deviation((a.bfloat16() @ b.bfloat16()).float(), truth)) is None


class TestNear:
    TRUE = torch.arange(1.0, 101.0).reshape(10, 10) / 3
    WIDE = torch.randn(2000, 100, generator=torch.Generator().manual_seed(0))
    BOUND = Deviation(1e-6, 1e-5)

    def test_rounding_is_near(self):
        assert near(self.TRUE * (1 + 1e-7), self.TRUE, self.BOUND)

    @pytest.mark.parametrize(
        "wrong",
        [
            pytest.param(lambda t: t * 1.01, id="off by a factor"),
            pytest.param(lambda t: t.flip(0), id="permuted"),
            pytest.param(lambda t: torch.where(t == t[4, 9], torch.nan, t), id="one NaN"),
            pytest.param(lambda t: torch.where(t == t[4, 9], torch.inf, t), id="one infinity"),
            pytest.param(lambda t: t.bfloat16().float(), id="rounded"),
        ],
    )
    def test_what_is_wrong_is_not(self, wrong):
        assert not near(wrong(self.TRUE), self.TRUE, self.BOUND)

    @pytest.mark.parametrize(
        "tiny",
        [
            pytest.param(lambda t, of: torch.cat([t, t, of * t]), id="rows"),
            pytest.param(lambda t, of: torch.cat([t, t, of * t], 1), id="columns"),
        ],
    )
    @pytest.mark.parametrize("true", [WIDE[:200], WIDE], ids=["small", "large"])
    def test_neglected_parts_show_however_little_they_add_to_the_norm(self, true, tiny):
        whole = tiny(true, 1e-6)
        assert near(whole * (1 + 1e-7), whole, self.BOUND)
        assert not near(tiny(true, 0.0), whole, self.BOUND)

    def test_of_rows_that_are_left_out_now_and_then_some_are_seen(self):
        true = torch.cat([self.WIDE, 1e-6 * self.WIDE[:400]])
        skipped = torch.cat([self.WIDE, 0.0 * self.WIDE[:400]])
        assert not all(near(skipped, true, self.BOUND) for _ in range(3))

    def test_complex_numbers_and_bytes_are_looked_at_too(self):
        for true in (self.WIDE + 1j, self.TRUE.to(torch.float8_e4m3fn)):
            assert near(true, true, self.BOUND)

    def test_where_infinity_belongs_it_takes_a_closer_look(self):
        infinite = torch.where(self.TRUE[4, 9] == self.TRUE, torch.inf, self.TRUE)
        assert not near(infinite, infinite, self.BOUND)

    def test_integers_must_be_the_same(self):
        whole = torch.arange(100)
        assert near(whole, whole, Deviation(0.0, 0.0))
        assert not near(whole + (whole == 7), whole, Deviation(0.0, 0.0))
