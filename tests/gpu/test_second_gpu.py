"""GPUs other than the first, and GPUs that somebody else is using."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from on_gpu import REFERENCE

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed
from adaexplore.run.session import open_session
from verdicts import passed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs a second GPU"),
]

HONEST = """
import torch
from torch import nn
import triton
import triton.language as tl

assert torch.cuda.device_count() == 1, "it sees GPUs that are none of its business"

@triton.jit
def relu_plus_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) + 1.0, mask=at < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512) / 22)

    def forward(self, x):
        y = x @ self.weight
        out = torch.empty_like(y)
        relu_plus_one[(triton.cdiv(y.numel(), 1024),)](y, out, y.numel(), BLOCK=1024)
        return out
"""
HOG = """
import torch
a = torch.randn(8192, 8192, device="cuda:1")
print("working", flush=True)
while True:
    for _ in range(20):
        b = a @ a
    torch.cuda.synchronize(1)
"""


@pytest.fixture
def second_gpu():
    """One test at a time has it: what they do there would disturb others."""
    with Path("/tmp/adaexplore-tests-second-gpu").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield "cuda:1"


@pytest.fixture
def problem(second_gpu):
    return Problem("example", REFERENCE, "triton", second_gpu)


def test_a_kernel_is_judged_and_timed_there(problem):
    with open_session(problem, Config()) as running:
        verdict = passed(running.evaluator, Candidate(HONEST, "triton"))
        assert verdict.timing.time_us > 10.0
        assert 0.2 < verdict.timing.speedup < 5.0
        assert running.environment.device == "cuda:1"


def test_what_the_compiler_proposes_there_names_no_gpu_but_the_first(problem):
    with open_session(problem, Config()) as running:
        dialogue = running.compiler(Config()).begin(Context(problem, "large", 1))
        with pytest.raises(StopIteration) as end:
            next(dialogue)
        candidate = end.value.value.candidate
        assert candidate.source
        assert "cuda:1" not in candidate.source
        assert "device(1)" not in candidate.source
        assert isinstance(running.evaluator.evaluate(candidate), Passed)


def test_an_honest_kernel_is_not_blamed_for_what_others_do(problem):
    with open_session(problem, Config()) as running:
        running.evaluator.prepare()
        with subprocess.Popen([sys.executable, "-c", HOG], stdout=subprocess.PIPE) as hog:
            hog.stdout.readline()
            verdict = running.evaluator.evaluate(Candidate(HONEST, "triton"))
            hog.kill()
        assert isinstance(verdict, Passed) or verdict.status == "infra_error", verdict
        if isinstance(verdict, Failed):
            assert "other programs keep the GPU busy" in verdict.reason
