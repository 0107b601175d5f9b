"""Cores of measurements: judge and candidate have them in timed blocks, and nothing else does."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest
from on_gpu import DEVICE

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.sandbox.cores import shares_here
from adaexplore.sandbox.family import family

pytestmark = pytest.mark.gpu

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) + x

def get_inputs():
    return [torch.randn(512, 512)]
"""


class Watch(threading.Thread):
    """A thread that notes on which processors this process's descendants may run."""

    def __init__(self):
        super().__init__()
        self.seen: dict[int, set[frozenset[int]]] = {}
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.001):
            for pid in family(os.getpid()):
                with contextlib.suppress(OSError):
                    allowed = frozenset(os.sched_getaffinity(pid))
                    self.seen.setdefault(pid, set()).add(allowed)


@pytest.mark.skipif(shares_here(0) is None, reason="needs eight physical cores for each GPU")
def test_judge_and_candidate_have_them_while_they_time(server):
    shares, watch = shares_here(0), Watch()
    problem = Problem("tanh", SOURCE, "triton", DEVICE)
    evaluator = LocalEvaluator(server, problem, timeout_s=120.0, memory_bytes=1 << 34)
    candidate = Candidate(SOURCE.replace("class Model(", "class ModelNew("), "triton")
    try:
        evaluator.prepare()
        watch.start()
        assert evaluator.evaluate(candidate).status == "passed"
    finally:
        watch.over.set()
        watch.join()
        evaluator.close()
    assert sum({shares.measuring, shares.other} <= seen for seen in watch.seen.values()) == 2
