import math

import pytest
import torch

from adaexplore.evaluate.truth.compare import exact
from adaexplore.evaluate.truth.mismatch import find_mismatch


def generator():
    return torch.Generator().manual_seed(0)


def found(out, truth, **others):
    others = {name: exact(t) for name, t in others.items()}
    return find_mismatch(out, exact(truth), output="output", inputs="own-0", others=others)


@pytest.fixture
def truth():
    return torch.randn(96, 160, generator=generator())


def edit(truth, key, value):
    out = truth.clone()
    out[key] = value(out[key]) if callable(value) else value
    return out


class TestWhere:
    @pytest.mark.parametrize(
        ("key", "pattern"),
        [
            ((slice(90, None),), "the last 6 of 96 indices of axis 0"),
            ((slice(0, 3),), "the first 3 of 96 indices of axis 0"),
            ((slice(None), -1), "index 159 (the last) of axis 1"),
            ((slice(None), slice(1, None, 2)), "every index 1 + 2k of axis 1"),
            ((slice(32, 64), slice(64, 128)), "indices 32 to 63 of axis 0 and indices 64 to 127"),
        ],
    )
    def test_a_block_of_indices(self, truth, key, pattern):
        mismatch = found(edit(truth, key, 0.0), truth)
        assert mismatch.pattern.startswith(f"zero; {pattern}")

    def test_whole_tiles(self, truth):
        out = truth.clone()
        out[:32, :32] = 0.0
        out[64:, 64:96] = 0.0
        assert found(out, truth).pattern == "zero; whole tiles of 32 x 32: 2 of 15 tiles"

    def test_blocks_of_a_flat_kernel(self):
        truth = torch.randn(5000, generator=generator())
        out = truth.clone()
        out[1024:2048] = out[3072:4096] = 7.0
        assert found(out, truth).pattern == (
            "one value, 7; whole blocks of 1024 in memory order: 2 of 5 blocks"
        )

    def test_a_stretch_in_memory_order(self):
        truth = torch.randn(20, 50, generator=generator())
        out = truth.clone()
        out.view(-1)[770:] = 0.0
        assert (
            found(out, truth).pattern == "zero; the last 230 elements in memory order (770 to 999)"
        )

    def test_zeros_that_are_right_by_accident_do_not_blur_a_block(self):
        truth = torch.randn(4, 16, 16, generator=generator())
        truth[:, :, 8:] = 0.0
        out = truth.clone()
        out[:, 12:] *= 0.5
        assert found(out, truth).pattern == (
            "the right values times 1/2; the last 4 of 16 indices of axis 1 and "
            "the first 8 of 16 indices of axis 2"
        )

    def test_scattered(self, truth):
        mask = torch.rand(truth.shape, generator=generator()) < 0.05
        assert found(torch.where(mask, 9.0, truth), truth).pattern.endswith("scattered")


class TestWhat:
    @pytest.mark.parametrize(
        ("change", "pattern"),
        [
            (lambda t: t * 2, "the right values times 2; everywhere"),
            (lambda t: t / 64, "the right values times 1/64; everywhere"),
            (lambda t: -t, "the right values times -1; everywhere"),
            (lambda t: t * 0.7071, "the right values times 0.7071; everywhere"),
            (lambda t: t + 3, "the right values plus 3; everywhere"),
            (lambda t: t * 0, "zero; everywhere"),
            (lambda t: t * math.nan, "NaN, or never written; everywhere"),
            (lambda t: t / 0.0, "infinite; everywhere"),
            (lambda t: t.roll(1, 0), "shifted by +1 along axis 0; everywhere"),
            (lambda t: t.roll(-1, 1), "shifted by -1 along axis 1; everywhere"),
            (lambda t: t.T.reshape(t.shape), "axes 0 and 1 are swapped"),
            (lambda t: t.flip(0).roll(5, 1), "the right values in the wrong places (permuted)"),
        ],
    )
    def test_one_thing_all_wrong_elements_share(self, truth, change, pattern):
        assert found(change(truth), truth).pattern.startswith(pattern)

    def test_a_factor_in_a_part(self, truth):
        mismatch = found(edit(truth, (slice(64, None),), lambda t: t * 0.5), truth)
        assert mismatch.pattern == (
            "the right values times 1/2; the last 32 of 96 indices of axis 0"
        )

    def test_the_result_of_other_inputs(self, truth):
        other = torch.randn(truth.shape, generator=torch.Generator().manual_seed(7))
        assert "other inputs (normal)" in found(other.clone(), truth, normal=other).pattern

    def test_other_inputs_with_the_same_result_prove_nothing(self, truth):
        assert "other inputs" not in found(truth * 2, truth, normal=truth).pattern

    def test_zeros_in_the_place_of_a_sparse_output_are_in_no_other_order(self):
        truth = torch.relu(torch.randn(512, 512, generator=generator()) - 2.8)
        assert "swapped" not in found(torch.zeros_like(truth), truth).pattern

    def test_integers_never_written(self):
        truth = torch.arange(200, dtype=torch.int32)
        out = truth.clone()
        out[150:] = torch.iinfo(torch.int32).min
        assert found(out, truth).pattern == "never written; the last 50 of 200 indices of axis 0"

    def test_rounding_is_not_called_wrong(self, truth):
        mismatch = found(truth.half().float(), truth)
        assert mismatch.share == 0
        assert mismatch.pattern == "every element is close: rounding, not logic"
        worst = (truth.half().double() - truth.double()).abs()
        assert worst[mismatch.first_index] == worst.max()

    def test_a_precision_that_is_too_low_is_no_matter_of_places(self, truth):
        noisy = truth * (1 + 0.01 * torch.rand(truth.shape))
        mismatch = found(noisy, truth)
        assert mismatch.share > 0.5
        assert mismatch.pattern == "every element is nearly right: too low a precision, not logic"
        off = (noisy.double() - truth.double()).abs()
        assert off[mismatch.first_index] == off.max()

    def test_a_place_is_told_even_where_little_is_wrong_there(self, truth):
        mismatch = found(edit(truth, (slice(64, None),), lambda t: t * 1.01), truth)
        assert mismatch.pattern.startswith("the right values times 1.01; whole tiles")

    def test_no_pattern_is_made_up(self, truth):
        noise = torch.randn(truth.shape)
        assert found(noise, truth).pattern == "everywhere"


class TestNumbers:
    @pytest.mark.parametrize(
        ("at", "off", "is_wrong"),
        [
            (0, 1.5e-4, True),  # a ten-thousandth of the largest element, 1
            (0, 0.7e-4, False),
            (1, 1.5e-3, True),  # and a thousandth of its own size
            (1, 1.05e-3, False),
        ],
    )
    def test_an_element_is_wrong_from_a_thousandth_on(self, at, off, is_wrong):
        truth = torch.tensor([0.0, 1.0, -0.5, 0.25])
        out = truth.clone()
        out[at] += off
        assert found(out, truth).share == (0.25 if is_wrong else 0.0)

    def test_the_first_wrong_element(self, truth):
        out = edit(edit(truth, (50, 7), 100.0), (80, 3), -5.0)
        mismatch = found(out, truth)
        assert mismatch.first_index == (50, 7)
        assert (mismatch.got, mismatch.expected) == (100.0, float(truth[50, 7]))
        assert mismatch.share == 2 / truth.numel()
        assert (mismatch.output, mismatch.inputs) == ("output", "own-0")

    def test_nan_is_counted_only_where_it_should_not_be(self):
        truth = torch.tensor([1.0, math.nan, 3.0, 4.0])
        assert found(torch.tensor([1.0, math.nan, math.nan, math.nan]), truth).nans == 2

    @pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.complex64, torch.bfloat16])
    def test_every_dtype(self, dtype):
        truth = torch.ones(4, 4, dtype=dtype)
        mismatch = found(torch.zeros(4, 4, dtype=dtype), truth)
        assert mismatch.share > 0
        assert mismatch.got == 0.0

    @pytest.mark.parametrize(
        ("out", "truth"),
        [
            ([True], [False]),
            ([1.0, 2.0], [1.0, math.inf]),
            ([2.0], [math.nan]),
            ([math.nan], [2.0]),
        ],
    )
    def test_every_kind_of_number(self, out, truth):
        mismatch = found(torch.tensor(out), torch.tensor(truth))
        assert mismatch.share == 1 / len(truth)

    def test_elements_that_may_fall_either_way_do_not_count(self):
        truth, out = torch.tensor([1, 2, 3]), torch.tensor([9, 2, 9])
        ties = torch.tensor([True, False, False])
        mismatch = find_mismatch(out, truth, output="output", inputs="own-0", ties=ties)
        assert (mismatch.first_index, mismatch.share) == ((2,), pytest.approx(1 / 3))

    def test_a_scalar(self):
        mismatch = found(torch.tensor(2.0), torch.tensor(1.0))
        assert (mismatch.first_index, mismatch.share) == ((), 1.0)
