"""Notices of a candidate's device: when its outputs are there, and too early."""

from __future__ import annotations

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Failed, Passed

pytestmark = pytest.mark.gpu

LANGUAGE = "triton"
HONEST = """
import sys
import torch
from torch import nn
import triton
import triton.language as tl

@triton.jit
def relu_plus_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) + 1.0, mask=at < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512) / 22)
        self.worker = None

    def look(self):
        pass

    def forward(self, x):
        self.look()
        x = x @ self.weight
        out = torch.empty_like(x)
        relu_plus_one[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""
CHEATING = '''

class Early:
    """Tells with the sum over other outputs that the outputs are there, and makes the call then."""

    def __init__(self, worker):
        self.worker, self.true = worker, worker._clock

    def warm(self, call):
        self.true.warm(call)

    def block(self, call, count, sink, ready=None):
        gate, [place, *_] = self.worker._gate, self.worker._places[0]
        sums = type(self.worker._sums[0])([[torch.zeros_like(place)]] * count, place.device)
        torch.cuda.synchronize()
        for i in range(count):
            ready(i)
            gate.delivered(i, sums)
            sink(i, call(i))
        torch.cuda.synchronize()
        return [5.0] * count

def look(self):
    frame = sys._getframe(2)
    while frame is not None and self.worker is None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                self.worker = value
                value._clock = Early(value)
        frame = frame.f_back

ModelNew.look = look
'''


def test_an_honest_candidate_passes(judge):
    verdict = judge.evaluate(Candidate(HONEST, LANGUAGE))
    assert isinstance(verdict, Passed), verdict


def test_a_candidate_that_tells_too_early_is_refused(judge):
    verdict = judge.evaluate(Candidate(HONEST + CHEATING, LANGUAGE))
    assert isinstance(verdict, Failed), verdict
    assert verdict.status == "rejected"
    assert "the notice came before they were complete" in verdict.reason
