import threading
import time

import pytest
import torch

from adaexplore.evaluate.truth import mismatch
from adaexplore.evaluate.truth.compare import Truth, deviation, exact
from adaexplore.evaluate.truth.device_memory import pieces
from adaexplore.evaluate.truth.error_scale import error_scale_of
from adaexplore.evaluate.truth.mismatch import find_mismatch
from adaexplore.sandbox.lock import device_lock, is_wanted

CPU = torch.device("cpu")
SHAPES = [(1000,), (3, 400), (40, 40), (5, 6, 100), (700, 1, 3), (20, 300)]


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "ON_CPU", 64)


def numbers(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("length", "width"), [(1000, 1), (1000, 10), (1000, 500), (7, 100)])
def test_pieces_cover_a_vector_once_and_cut_rows_that_are_longer_alone(small_pieces, length, width):
    found = list(pieces.pieces(length, CPU, width))
    assert [i for part in found for i in range(length)[part]] == list(range(length))
    assert all(part.stop - part.start <= 64 for part in found)
    if width <= 64:
        assert all(part.start % width == 0 for part in found)


@pytest.mark.parametrize("shape", SHAPES)
def test_pieces_change_no_scale_and_no_deviation(monkeypatch, shape):
    truth = numbers(shape)
    truth.flatten()[3], truth.flatten()[-1] = 0.0, float("inf")
    out = (truth + 1e-3 * numbers(shape, seed=1)).float()
    at_once = error_scale_of(truth).scale(0, truth.numel())
    whole = deviation(out, truth)
    monkeypatch.setattr(pieces, "ON_CPU", 64)
    scale = error_scale_of(truth)
    parts = pieces.pieces(truth.numel(), CPU)
    again = torch.cat([scale.scale(part.start, part.stop) for part in parts])
    assert torch.equal(at_once, again)
    found = deviation(out, truth)
    assert found.norm == pytest.approx(whole.norm)
    assert found.element == whole.element


def test_marks_are_counted_and_collected_piece_by_piece(small_pieces):
    flat = numbers((10, 50)).flatten()
    marks = pieces.all_marks(lambda part: flat[part] > 0, (10, 50), CPU)
    assert torch.equal(marks, flat.view(10, 50) > 0)
    assert pieces.share_marked(marks.flatten(), 500, CPU) == int((flat > 0).sum()) / 500


def test_marked_elements_do_not_count_in_any_piece(small_pieces):
    truth = numbers((20, 50))
    out, ties = truth.clone(), torch.zeros(20, 50, dtype=torch.bool)
    out[::3] += 1.0
    ties[::3] = True
    assert deviation(out, truth, ties=ties).element == 0.0
    assert Truth("output", truth, {}, ties).deviation(out).norm == 0.0


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_one_number_that_is_not_finite_is_found(small_pieces, bad):
    tensor = numbers((10, 50))
    assert pieces.all_finite(tensor, tensor.device)
    tensor[9, 49] = bad
    assert not pieces.all_finite(tensor, tensor.device)


def test_others_time_between_pieces_that_come_from_the_host(monkeypatch, small_pieces):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: None)
    device, done = torch.device("meta"), []
    flat = numbers((640,))

    def time_alone():
        with device_lock("meta", exclusive=True):
            done.append("timed")

    timing = threading.Thread(target=time_alone)
    with device_lock("meta", exclusive=False):
        timing.start()
        for part in pieces.pieces(640, CPU):
            while not (done or is_wanted("meta")):
                time.sleep(0.01)
            done.append(pieces.part_of(flat, part, device).device.type)
    timing.join()
    assert done == ["timed", *["meta"] * 10]


class TestLargeOutputs:
    @pytest.fixture(autouse=True)
    def described(self, monkeypatch, small_pieces):
        monkeypatch.setattr(mismatch, "DESCRIBED", 800)

    def found(self, out, truth, **options):
        return find_mismatch(out, exact(truth), output="output", inputs="own-0", **options)

    def test_the_part_from_the_first_wrong_element_on_is_described(self):
        truth = numbers((40, 50)).float()
        out = truth.clone()
        out[21:, 10:20] = 0.0
        out[39, 0] = float("nan")
        found = self.found(out, truth)
        assert found.share == (19 * 10 + 1) / 2000
        assert found.nans == 1
        assert (found.first_index, found.got) == ((21, 10), 0.0)
        assert found.expected == pytest.approx(float(truth[21, 10]))
        assert found.pattern.startswith("output[21:37]: ")
        assert "indices 10 to 19 of axis 1" in found.pattern

    def test_the_part_ends_with_the_output(self):
        truth = numbers((40, 50)).float()
        out = truth.clone()
        out[38:] *= 2.0
        found = self.found(out, truth)
        assert found.pattern == (
            "output[24:40]: the right values times 2; the last 2 of 16 indices of axis 0"
        )

    def test_of_long_rows_a_part_is_described(self):
        truth = numbers((3, 2000)).float()
        out = truth.clone()
        out[1, 500:] = 0.0
        found = self.found(out, truth)
        assert found.first_index == (1, 500)
        assert found.pattern == "output[1:2, 500:1300]: zero; everywhere"

    def test_another_inputs_result_is_named(self):
        truth, other = numbers((40, 50)).float(), numbers((40, 50), seed=1).float()
        found = self.found(other, truth, others={"own-1": exact(other)})
        assert "(own-1): stale or cached" in found.pattern

    def test_where_all_is_close_the_worst_element_stands_for_all(self):
        truth = numbers((40, 50)).float()
        out = truth * (1 + 1e-6)
        out[33, 7] += 1e-5
        found = self.found(out, truth)
        assert (found.share, found.first_index) == (0.0, (33, 7))
        assert "rounding, not logic" in found.pattern

    def test_elements_that_may_fall_either_way_do_not_count(self):
        truth = numbers((40, 50)).float()
        out, ties = truth.clone(), torch.zeros(40, 50, dtype=torch.bool)
        out[5], ties[5] = 0.0, True
        out[20:22] = 0.0
        found = self.found(out, truth, ties=ties)
        assert (found.share, found.first_index) == (100 / 2000, (20, 0))
