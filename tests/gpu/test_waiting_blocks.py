"""Kernels whose blocks wait for each other, on a GPU that is free and on one that is half held."""

from __future__ import annotations

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Passed

pytestmark = pytest.mark.gpu

LANGUAGE = "triton"
SOURCE = """
import torch
from torch import nn
import triton
import triton.language as tl

@triton.jit
def relu_plus_one(x_ptr, out_ptr, seen_ptr, n, BLOCK: tl.constexpr):
    tl.atomic_add(seen_ptr, 1)
    while tl.atomic_add(seen_ptr, 0) < WAITED:
        pass
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(out_ptr + at, tl.maximum(x, 0.0) + 1.0, mask=at < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512) / 22)

    def forward(self, x):
        x = x @ self.weight
        out = torch.empty_like(x)
        seen = torch.zeros(1, dtype=torch.int32, device=x.device)
        blocks = 2 * torch.cuda.get_device_properties(0).multi_processor_count
        relu_plus_one[(blocks,)](
            x, out, seen, x.numel(), BLOCK=1024, num_warps=32, maxnreg=32LAUNCH
        )
        return out
"""


def candidate(waited: str, launch: str = "") -> Candidate:
    return Candidate(SOURCE.replace("WAITED", waited).replace("LAUNCH", launch), LANGUAGE)


def test_a_barrier_over_a_full_grid_does_not_end_on_a_half_held_gpu(judge):
    verdict = judge.evaluate(candidate("tl.num_programs(0)"))
    assert isinstance(verdict, Passed), verdict
    assert "waits-for-blocks" in verdict.labels
    assert "relu_plus_one does not end while half of the GPU is held" in verdict.detail


def test_a_wait_for_blocks_that_run_anyway_ends_there(judge):
    verdict = judge.evaluate(candidate("1"))
    assert isinstance(verdict, Passed), verdict
    assert "waits-for-blocks" in verdict.labels
    assert "relu_plus_one ends while half of the GPU is held" in verdict.detail


def test_a_cooperative_launch_has_no_label(judge):
    verdict = judge.evaluate(candidate("tl.num_programs(0)", ", launch_cooperative_grid=True"))
    assert isinstance(verdict, Passed), verdict
    assert not any("waits" in label for label in verdict.labels)
    assert "waits-for-blocks" not in verdict.detail
