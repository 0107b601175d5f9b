"""The examples that prompts show: each runs as it stands."""

import ast
import os
import subprocess
import sys
from contextlib import closing
from importlib.resources import files

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import LANGUAGES, Problem
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.languages import DIALECTS
from adaexplore.run.session import PRELOAD_OFFLINE
from adaexplore.sandbox.process import ForkServer

EXAMPLES = files("adaexplore.propose.model") / "examples"
TRITON = """
import torch, example
torch.manual_seed(0)
model = example.ModelNew(48, 81).to(DEVICE)
a, b = torch.randn(70, 48, device=DEVICE), torch.randn(70, 48, device=DEVICE)
with torch.no_grad():
    expected = model.norm(torch.relu(model.linear(a * torch.sigmoid(b))))
    torch.testing.assert_close(model(a, b), expected, rtol=1e-5, atol=1e-5)
"""
TRITON_REFERENCE = """
import torch
from torch import nn

rows = 48
inner = 80
outer = 72

class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.norm = nn.LayerNorm(outer)

    def forward(self, a, b):
        return self.norm(torch.relu(self.linear(a * torch.sigmoid(b))))

def get_inputs():
    return [torch.randn(rows, inner), torch.randn(rows, inner)]

def get_init_inputs():
    return [inner, outer]
"""
RMS_NORM = """
import torch, example
torch.manual_seed(0)
model = example.ModelNew(COLUMNS, 1e-6).to(DEVICE)
x, residual = torch.randn(2, 33, COLUMNS, device=DEVICE), torch.randn(2, 33, COLUMNS, device=DEVICE)
total = x + residual
expected = total * torch.rsqrt((total**2).mean(-1, keepdim=True) + 1e-6) * model.scale
with torch.no_grad():
    torch.testing.assert_close(model(x, residual), expected, rtol=1e-5, atol=1e-5)
"""


@pytest.fixture
def check(tmp_path):
    """Runs a check of a language's example in a process of its own."""

    def check(language, script, device, columns=100):
        (tmp_path / "example.py").write_text((EXAMPLES / f"{language}.py.txt").read_text())
        constants = f"DEVICE = {device!r}\nCOLUMNS = {columns}\n"
        (tmp_path / "check.py").write_text(constants + script)
        done = subprocess.run(
            [sys.executable, tmp_path / "check.py"],
            env={**os.environ, "TORCH_EXTENSIONS_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    return check


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_is_a_short_module_with_its_class(language):
    source = (EXAMPLES / f"{language}.py.txt").read_text()
    assert "ModelNew" in {n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)}
    assert len(source.splitlines()) < 120


def judged(server, language):
    """The verdict on a language's example without a GPU."""
    problem = Problem("example", TRITON_REFERENCE, language, "cpu", target="sm_90")
    evaluator = OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=8 << 30)
    try:
        source = (EXAMPLES / f"{language}.py.txt").read_text()
        return evaluator.evaluate(Candidate(source, language))
    finally:
        evaluator.close()


def test_triton_compiles_for_a_gpu_and_is_correct_when_interpreted(server):
    verdict = judged(server, "triton")
    assert (verdict.status, verdict.precision) == ("passed", "fp32")
    assert verdict.labels == ()


def test_helion_compiles_for_a_gpu_and_is_correct_when_interpreted():
    pytest.importorskip("helion")
    with closing(ForkServer.start((*PRELOAD_OFFLINE, *DIALECTS["helion"].preload))) as server:
        verdict = judged(server, "helion")
    assert (verdict.status, verdict.precision) == ("passed", "fp32")
    assert verdict.labels == ()


@pytest.mark.slow
def test_cpp(check):
    check("cpp", RMS_NORM, "cpu")


@pytest.mark.gpu
def test_triton_on_a_gpu(check):
    check("triton", TRITON, "cuda")


@pytest.mark.gpu
def test_cuda(check):
    check("cuda", RMS_NORM, "cuda")


@pytest.mark.gpu
def test_helion_on_a_gpu(check):
    pytest.importorskip("helion")
    check("helion", TRITON, "cuda")
