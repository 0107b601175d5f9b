"""A session whose evaluator also asks the published judge, on the CPU."""

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.problem import Problem, Workload
from adaexplore.run.published_judge import published_judge_fits
from adaexplore.run.session import open_session

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
PROBLEM = Problem("twice_relu", REFERENCE, "cpp", "cpu")


def candidate(result):
    source = REFERENCE.partition("def get_inputs")[0].replace("class Model", "class ModelNew")
    return Candidate(source.replace("torch.relu(x) * 2", result), "cpp")


@pytest.mark.slow
def test_a_kernel_within_the_published_tolerance_alone_has_both_verdicts():
    settings = Config(published_judge=True, timeout_s=60.0)
    with open_session(PROBLEM, settings) as session:
        session.evaluator.prepare()
        near = session.evaluator.evaluate(candidate("torch.relu(x) * 2.01"))
        ends = session.evaluator.evaluate(candidate("exit()"))
    assert near.status == "wrong_output"
    assert (near.published.why, near.published.speedup > 0) == ("", True)
    assert ends.status != "passed"
    assert ends.published.why


def test_only_problems_in_kernelbench_s_form_are_judged():
    captured = Workload(file="/inputs.pt", digest="0")
    assert published_judge_fits(PROBLEM)
    assert not published_judge_fits(Problem("p", REFERENCE, "cpp", "cpu", workloads=(captured,)))
    assert not published_judge_fits(Problem("p", REFERENCE, "triton", "cpu", target="sm_90"))
