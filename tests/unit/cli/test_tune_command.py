"""tune, on a run that is there already."""

from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Estimate, Failed, Passed, Timing
from adaexplore.problems.kernelbench import load
from adaexplore.store import RunRecord, create_run, read_run

CPP = '''
import torch
from torch.utils.cpp_extension import load_inline

CODE = """
#include <ATen/ops/empty_like.h>
#include <torch/library.h>
constexpr int CHUNK = 16;
at::Tensor relu_plus(const at::Tensor& x) {
  auto out = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); i += CHUNK)
    for (int64_t j = i; j < i + CHUNK; ++j)
      to[j] = (from[j] > 0 ? from[j] : 0) + 1;
  return out;
}
TORCH_LIBRARY(tuned, library) { library.def("relu_plus", relu_plus); }
"""
load_inline("tuned", CODE, is_python_module=False, no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.ops.tuned.relu_plus(x)
'''
TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.maximum(value, 0.0) + 1.0, mask=at < n)


class ModelNew(torch.nn.Module):
    BLOCK = 512

    def forward(self, x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), self.BLOCK),)
        kernel[grid](x, out, x.numel(), BLOCK=self.BLOCK, num_warps=4)
        return out
"""
SLOW = Timing(1e6, (1e6, 1e6), {"eager": 10.0}, 1e-5, (1e-5, 1e-5), 1e-5, 7)


@pytest.fixture
def run_of(tmp_path, problem):
    def run_of(candidate, evaluation, target=None):
        asked = load(problem, device="cpu", language=candidate.language, precision="fp32", seed=0)
        record = RunRecord(
            problem=replace(asked, target=target),
            config=Config(confirm=False, seed=0, steps=1),
            proposers=("compiler",),
            environment=Environment(),
            command="adaexplore explore problem.py",
            created_at=0.0,
        )
        path = tmp_path / "run"
        with create_run(path, record) as run:
            run.store.record(Node(1, 0, "large", Proposal(candidate, "compiler", ""), evaluation))
        return path

    return run_of


def variants(path):
    with read_run(path) as run:
        return run.store.nodes()[1:]


@pytest.mark.slow
def test_variants_of_a_cpp_kernel_are_built_and_measured(adaexplore, run_of):
    path = run_of(Candidate(CPP, "cpp"), Passed("fp32", 0.0, SLOW))
    result = adaexplore("tune", path, "-n", 1)
    assert result.code == 0, result
    [node] = variants(path)
    assert (node.step_kind, node.parent_id, node.proposal.origin) == ("tune", 1, "tuner")
    assert node.evaluation.status == "passed", node.evaluation
    chunk = node.proposal.settings["parameters"]["CHUNK"]
    assert f"CHUNK 16 -> {chunk}" in result.out
    assert f"constexpr int CHUNK = {chunk};" in (path / "best.py").read_text()
    assert (path / "report.html").exists()


def test_variants_of_a_triton_kernel_without_a_gpu(adaexplore, run_of):
    pytest.importorskip("triton")
    slow = Passed("fp32", 0.0, Estimate(1e6, "memory", "sm_90"))
    path = run_of(Candidate(TRITON, "triton"), slow, target="sm_90")
    assert adaexplore("tune", path, "--variants", 2).code == 0
    assert [node.evaluation.status for node in variants(path)] == ["passed"] * 2
    assert all(
        {"BLOCK", "num_warps"} == n.proposal.settings["parameters"].keys() for n in variants(path)
    )
    again = adaexplore("tune", path, "--variants", 2)
    assert (again.code, len(variants(path))) == (0, 2)


def test_its_end_in_a_pipe_is_what_show_prints(adaexplore, run_of):
    plain = CPP.replace("CHUNK = 16", "CHUNK = -1").replace("constexpr", "const")
    path = run_of(Candidate(plain, "cpp"), Passed("fp32", 0.0, SLOW))
    result = adaexplore("tune", path)
    assert "has no numbers to tune" in result.out
    shown = adaexplore("show", path).out
    assert max(map(len, shown.splitlines())) > 80
    assert shown in result.out


def test_a_run_with_nothing_correct_has_nothing_to_tune(adaexplore, run_of):
    path = run_of(Candidate(CPP, "cpp"), Failed("timeout", "too slow"))
    assert "has no correct kernel to tune yet" in adaexplore("tune", path).complaint
