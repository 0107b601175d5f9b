"""What a workload on the CPU tells of itself: bits that vary, and bounds by input set."""

from contextlib import ExitStack

import pytest

from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.workload import JudgedWorkload
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

    def judged(more):
        problem, notes = Problem("example", SOURCE.format(more=more), "cpp", "cpu"), []
        instance, [workload] = Instance.of(problem, tmp_path), problem.workloads
        with ExitStack() as turn:
            return JudgedWorkload(
                problem, instance, workload, notes, first_set=0, sharing=1, turn=turn, lean=True
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
