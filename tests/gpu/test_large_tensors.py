"""References with tensors of gigabytes, beside which little else fits on a GPU."""

from __future__ import annotations

import pytest
import torch
from on_gpu import DEVICE

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Checks, Problem
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.evaluate.truth.device_memory.room import room_on
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance

ROWS, COLUMNS = 4096, 393_216  # KernelBench 1/31: 6 GiB in, 6 GiB out
BYTES = 4 * ROWS * COLUMNS
RUNS = 8  # by the reckoning in `docs/evaluator.md`, in sizes of the input
SOURCE = f"""
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.elu(x)

def get_inputs():
    return [torch.rand({ROWS}, {COLUMNS})]
"""
PROBLEM = Problem("elu", SOURCE, "triton", DEVICE, checks=Checks("tf32"))

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available()
        or torch.cuda.get_device_properties(DEVICE).total_memory < 20 * BYTES,
        reason="needs a GPU with 130 GB",
    ),
]


def truths_of(folder):
    instance = Instance.of(PROBLEM, folder)
    return Truths(ReferenceRuns(PROBLEM, instance, instance.inputs(0)), [], fewest=True)


def test_truths_stay_on_the_gpu_where_a_quarter_of_it_remains_free(tmp_path):
    truths = truths_of(tmp_path)
    assert len(truths.sets) == 2
    assert all(s.truths[0].value.is_cuda for s in truths.sets)
    room = room_on(DEVICE)
    assert room.free > room.total / 4


def test_truths_leave_the_gpu_to_the_runs_where_others_hold_half_of_it(tmp_path):
    held = torch.empty(room_on(DEVICE).total // 2 + (5 << 30), dtype=torch.uint8, device=DEVICE)
    torch.cuda.reset_peak_memory_stats()
    truths = truths_of(tmp_path)
    peak = torch.cuda.max_memory_allocated() - held.nbytes
    assert len(truths.sets) == 2
    assert peak < RUNS * BYTES + (4 << 30)
    assert truths.sets[0].truths[0].value.device.type == "cpu"


def test_a_candidate_of_large_tensors_gets_a_verdict(server):
    same = SOURCE.replace("class Model(", "class ModelNew(")
    wrong = same.replace("elu(x)", "elu(x, alpha=0.999)")
    with_zeros = same.replace("rand(", "randn(").replace("elu(x)", "relu(x)")
    evaluator = LocalEvaluator(server, PROBLEM, timeout_s=300.0, memory_bytes=1 << 36, brief=True)
    try:
        evaluator.prepare()
        verdicts = [evaluator.evaluate(Candidate(s, "triton")) for s in (same, wrong, with_zeros)]
    finally:
        evaluator.close()
    assert [v.status for v in verdicts] == ["passed", "wrong_output", "wrong_output"], verdicts
