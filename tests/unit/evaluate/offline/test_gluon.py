"""Gluon's kernels without a GPU: compiled for the target, never run, never correct."""

import base64
import pickle

import pytest
import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Access, Checks, Problem
from adaexplore.core.verdict.evaluation import NOT_COMPILED, Fault, rank
from adaexplore.evaluate.kernels.ahead import compile_ahead
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.evaluate.wire.messages import Build
from adaexplore.sandbox.user.values import Arguments, Inputs
from gluon_sources import SOURCE, changed
from verdicts import failed

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512) / 22)

    def forward(self, x):
        return torch.relu(x @ self.weight) + 1

def get_inputs():
    return [torch.randn(4096, 512)]
"""


@pytest.fixture(scope="module")
def judge_of(server):
    """Makes a judge of candidates in a language, or in none but their own kernels."""
    made = {}

    def judge_of(language="gluon", **options):
        key = (language, *options)
        if key not in made:
            problem = Problem(
                "example", REFERENCE, language, "cpu", checks=Checks(**options), target="sm_90"
            )
            made[key] = OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=8 << 30)
        return made[key]

    yield judge_of
    for judge in made.values():
        judge.close()


def told(judge, source):
    return failed(judge, Candidate(source, "gluon"))


def test_one_that_compiles_was_not_run_and_is_not_correct(judge_of):
    verdict = told(judge_of(), SOURCE)
    assert verdict.status == "not_run"
    assert verdict.reason == (
        "1 kernel compiles for sm_90; not run here: Gluon runs on a GPU only, so nothing is known "
        "of its results"
    )
    assert verdict.detail.startswith("relu_plus_one: 4 warps, ")
    assert verdict.status not in NOT_COMPILED


def test_one_without_a_kernel_says_so(judge_of):
    verdict = told(judge_of(), REFERENCE.replace("class Model", "class ModelNew"))
    assert verdict.status == "not_run"
    assert verdict.reason.startswith("it launches no kernel of its own; not run here: ")


def test_a_wrong_one_is_not_run_either(judge_of):
    assert told(judge_of(), changed("+ 1.0", "+ 2.0")).status == "not_run"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("gl.maximum(x, 0.0)", "gl.sigmoid(x)", "gl.store(", "has no attribute 'sigmoid'"),
        (
            "[4], [32], [num_warps]",
            "[4], [16], [num_warps]",
            "at =",
            "Layout has 16 threads per warp",
        ),
        ("mask=at < n)\n    gl", "mask=(at + 0.5) & 1)\n    gl", "x = gl.load(", ""),
    ],
    ids=["missing function", "layout of half a warp", "type of the mask"],
)
def test_one_that_does_not_compile_is_refused_and_told_why(judge_of, old, new, line, words):
    verdict = told(judge_of(), changed(old, new))
    assert verdict.status == "compile_error"
    assert words in verdict.reason
    assert isinstance(verdict.feedback, Fault)
    assert verdict.feedback.source_line.startswith(line)
    assert rank(verdict) < rank(told(judge_of(), SOURCE))


def test_more_shared_memory_than_the_target_has_is_refused(judge_of):
    greedy = changed(
        "    x = gl.load(",
        "    s: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])\n"
        "    ring = gl.allocate_shared_memory(gl.float32, [64, BLOCK], s)\n"
        "    ring.index(0).store(gl.zeros([BLOCK], gl.float32, layout))\n"
        "    x = ring.index(0).load(layout) + gl.load(",
    )
    verdict = told(judge_of(), greedy)
    assert verdict.status in ("compile_error", "runtime_error", "out_of_memory")
    assert "262,144 bytes of shared memory; a block of sm_90 has at most 232,448" in verdict.reason


def test_an_exception_of_the_host_s_code_is_its_own(judge_of):
    verdict = told(judge_of(), changed("BLOCK=1024, num_warps=4", "BLOK=1024, num_warps=4"))
    assert verdict.status in ("runtime_error", "compile_error")
    assert "BLOK" in verdict.reason or "BLOCK" in verdict.reason


def test_one_that_launches_nothing_is_refused_where_own_kernels_are_required(judge_of):
    launch = "relu_plus_one[grid](h, out, h.numel(), BLOCK=1024, num_warps=4)"
    verdict = told(judge_of(require_custom=True), changed(launch, "out = h.relu() + 1"))
    assert (verdict.status, verdict.reason) == ("rejected", "it launches no kernel of its own")


def test_in_another_language_its_kernel_cannot_be_judged(judge_of):
    verdict = failed(judge_of("triton"), Candidate(SOURCE, "triton"))
    assert verdict.status == "rejected"
    assert "relu_plus_one is in Gluon, which runs on a GPU only" in verdict.reason


def test_its_kernel_is_compiled_ahead(tmp_path, monkeypatch):
    def pickled(value):
        return base64.b64encode(pickle.dumps(value)).decode()

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.chdir(tmp_path)
    inputs = Inputs((torch.empty(4096, 512, device="meta"),), {})
    compile_ahead(
        Build(
            source=SOURCE,
            capability=(9, 0),
            seed=0,
            mode="as-built",
            access=Access(),
            init=pickled(Arguments((), {})),
            inputs=(pickled(inputs),),
            extensions=False,
        )
    )
    assert [file.name for file in tmp_path.rglob("*.cubin")] == ["relu_plus_one.cubin"]
