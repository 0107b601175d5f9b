"""What a workload on the CPU tells of itself: bits that vary, and bounds by input set."""

from contextlib import ExitStack

import pytest

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge import workload
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.sandbox.lock import has_large_turn, large_turn
from adaexplore.sandbox.user.user_code import Instance

SOURCE = """
import os

import numpy
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return 2 * x + {more}


def get_inputs():
    return [torch.randn(32, 32)]
"""


@pytest.fixture
def judged(tmp_path):
    """Return the judged workload of a sum, and its notes."""

    def judged(more, turn=None, before_turn=None):
        problem, notes = Problem("example", SOURCE.format(more=more), "cpp", "cpu"), []
        instance, [only] = Instance.of(problem, tmp_path), problem.workloads
        with turn or ExitStack() as turn:
            return JudgedWorkload(
                problem,
                instance,
                only,
                notes,
                first_set=0,
                sharing=1,
                turn=turn,
                before_turn=before_turn,
                lean=True,
            ), notes

    return judged


@pytest.mark.parametrize(
    ("more", "varies"),
    [
        ("x.mean()", False),
        ("1e-6 * numpy.random.default_rng().random()", True),
        ("1e-6 * int.from_bytes(os.urandom(8), 'big') / 2**64", True),
    ],
)
def test_bits_that_vary_from_run_to_run_are_noted(judged, more, varies):
    notes = judged(more)[1]
    told = [note for note in notes if note.startswith("output is not the same in every bit in two")]
    assert len(told) == varies


def test_bounds_are_known_by_input_set_and_wider_on_other_inputs(judged):
    bounds = judged("1")[0].bounds
    assert next(iter(bounds)) == "own-0"
    assert 0 < bounds["own-0"] < 1e-5 < bounds["normal"]


class TestLarge:
    """Its own baselines are tried before its turn for large work, once it is known to run."""

    @pytest.fixture(autouse=True)
    def large(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ADAEXPLORE_LOCKS", str(tmp_path))
        monkeypatch.setattr(workload, "wanted_for_truths", lambda *_: 1)
        monkeypatch.setattr(workload, "turn_for_truths", lambda _, device: large_turn(device))

    def test_baselines_are_tried_out_of_turn_and_truths_made_in_turn(self, judged):
        tried, in_turn = [], []

        class Turn(ExitStack):
            def __exit__(self, *error):
                in_turn.append(has_large_turn("cpu"))
                return super().__exit__(*error)

        judged("0.0", Turn(), lambda names: tried.append((set(names), has_large_turn("cpu"))))
        assert tried == [({"eager", "compile"}, False)]
        assert in_turn == [True]
        assert not has_large_turn("cpu")

    def test_nothing_is_tried_of_a_reference_that_is_refused(self, judged):
        tried = []
        with pytest.raises(BadProblemError, match="differs between two runs"):
            judged("torch.rand(32, 32)", before_turn=tried.append)
        assert tried == []
        assert not has_large_turn("cpu")
