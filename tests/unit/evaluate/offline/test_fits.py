"""The check without a GPU that kernels fit on one."""

from textwrap import dedent

import pytest
from sources import MATMUL, MATMUL_KERNEL

from adaexplore.core.problem import Problem
from adaexplore.sandbox.jobs import run_job

JOB = "adaexplore.evaluate.offline.fits:job"


@pytest.fixture
def why(judge):
    def why(source):
        problem = Problem("example", dedent(MATMUL), "triton", "cuda")
        request = {"problem": problem.to_json(), "source": source, "capability": [9, 0]}
        return run_job(judge.server, JOB, request, 120.0, confined="cpu")["why"]

    return why


def test_a_kernel_fits_or_the_reason_is_given(why):
    assert why(MATMUL_KERNEL) == ""
    large = MATMUL_KERNEL.replace("BM, BN, BK)", "BM, BN, BK, num_warps=64)")
    assert "2,048 threads; a block of sm_90 has at most 1,024" in why(large)


def test_a_candidate_that_needs_data_is_left_to_the_judge(why):
    assert why("class ModelNew: ...") == ""
