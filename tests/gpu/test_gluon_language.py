"""Gluon candidates on a real GPU: compiled ahead, told whose work is whose and what is wrong."""

from __future__ import annotations

import textwrap
from contextlib import closing
from importlib.metadata import version

import pytest
from on_gpu import DEVICE, REFERENCE

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.problem import Checks, Problem
from adaexplore.core.verdict.evaluation import Fault, Mismatch
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.propose.model.prompts import Prompts
from gluon_sources import HANG, SOURCE, changed
from verdicts import failed, passed

pytestmark = pytest.mark.gpu

LANGUAGE = "gluon"
HALF = textwrap.dedent("""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.linear = nn.Linear(inner, outer, dtype=torch.float16)
            self.norm = nn.LayerNorm(outer, dtype=torch.float16)

        def forward(self, a, b):
            return self.norm(torch.relu(self.linear(a * torch.sigmoid(b))))

    def get_inputs():
        return [torch.randn(1000, 512).half(), torch.randn(1000, 512).half()]

    def get_init_inputs():
        return [512, 328]
""")


def candidate(source: str) -> Candidate:
    return Candidate(source, "gluon")


HONEST = candidate(SOURCE)


class TestHonest:
    def test_its_kernel_is_its_own_with_its_launch(self, judge):
        verdict = passed(judge, HONEST)
        assert verdict.profile is not None, verdict.detail
        [own] = [use for use in verdict.profile.kernels if use.origin == "custom"]
        assert own.name == "relu_plus_one"
        assert own.launch.grid == (4096 * 512 // 1024, 1, 1)
        assert own.launch.block == (128, 1, 1)
        assert verdict.labels == ("library:cublas",)

    def test_it_is_compiled_before_it_is_first_launched(self, judge):
        before = """import glob
        count = len(glob.glob("triton/*/relu_plus_one.cubin"))
        relu_plus_one[grid]("""
        after = """
        assert len(glob.glob("triton/*/relu_plus_one.cubin")) == count, "compiled at its first call"
        return out"""
        watched = changed("relu_plus_one[grid](", before).replace("\n        return out", after)
        passed(judge, candidate(watched))

    def test_the_example_of_the_prompts_multiplies_by_wgmma_and_tma(self, server):
        problem = Problem("example", HALF, "gluon", DEVICE, checks=Checks(precision="half"))
        example = Prompts().example("gluon", Environment(triton=version("triton")))
        judge = LocalEvaluator(server, problem, timeout_s=120.0, memory_bytes=1 << 34, brief=True)
        with closing(judge):
            verdict = passed(judge, candidate(example))
        assert {"tensor-core", "tma", "reduction"} <= set(verdict.descriptor.instructions)
        assert {use.origin for use in verdict.profile.kernels} == {"custom"}


class TestFeedback:
    def test_a_wrong_result_is_refused(self, judge):
        verdict = failed(judge, candidate(changed("gl.maximum(x, 0.0) + 1.0", "x + 1.0")))
        assert verdict.status == "wrong_output"

    def test_rows_that_are_left_out_are_seen(self, judge):
        tried = changed("(h, out, h.numel()", "(h, out, 4032 * 512")
        verdict = failed(judge, candidate(tried.replace("empty_like", "zeros_like")))
        assert verdict.status == "wrong_output"
        assert isinstance(verdict.feedback, Mismatch)
        assert verdict.feedback.pattern == "zero; the last 64 of 4096 indices of axis 0"

    def test_a_kernel_that_does_not_compile_names_its_line(self, judge):
        verdict = failed(judge, candidate(changed("gl.maximum(x, 0.0)", "gl.sigmoid(x)")))
        assert verdict.status == "compile_error"
        assert isinstance(verdict.feedback, Fault)
        assert verdict.feedback.source_line.startswith("gl.store(")

    def test_a_hang_ends_within_its_limit_and_harms_no_other(self, server):
        problem = Problem("example", REFERENCE, "gluon", DEVICE)
        judge = LocalEvaluator(server, problem, timeout_s=15.0, memory_bytes=1 << 34, brief=True)
        with closing(judge):
            assert failed(judge, candidate(changed("    x = gl.load(", HANG))).status == "timeout"
            passed(judge, HONEST)
