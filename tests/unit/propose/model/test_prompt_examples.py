"""The examples that prompts show: each runs as it stands."""

import ast
import os
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.problem import LANGUAGES, Problem
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.languages import DIALECTS, examples_of
from adaexplore.languages.cutedsl import host as cutedsl_host
from adaexplore.propose.model.prompts import Prompts
from adaexplore.run.processes import PRELOAD_OFFLINE
from adaexplore.sandbox.process import ForkServer
from fast_set import of_which_fast

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
HALF_REFERENCE = (
    TRITON_REFERENCE.replace("outer)\n", "outer, dtype=torch.float16)\n")
    .replace(
        "def __init__(self, inner, outer, dtype=torch.float16)", "def __init__(self, inner, outer)"
    )
    .replace("inner)]", "inner).half()]")
    .replace("inner), ", "inner).half(), ")
)
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

RMS_NORM_REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, columns, eps):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))
        self.eps = eps

    def forward(self, x, residual):
        total = x + residual
        return total * torch.rsqrt((total**2).mean(-1, keepdim=True) + self.eps) * self.scale

def get_inputs():
    return [torch.randn(1024, 3072), torch.randn(1024, 3072)]

def get_init_inputs():
    return [3072, 1e-6]
"""

CONVOLUTION_REFERENCE = """
import torch
from torch import nn

batch, channels, outer, height, width = 2, 40, 72, 12, 12

class Model(nn.Module):
    def __init__(self, channels, outer, width, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels, outer, width, stride=stride, padding=padding)
    def forward(self, x):
        return torch.relu(self.conv(x))
def get_inputs():
    return [torch.randn(batch, channels, height, width)]
def get_init_inputs():
    return [channels, outer, 3, 2, 1]
"""
ATTENTION_REFERENCE = """
import torch
from torch import nn
from torch.nn import functional as F

batch, steps, width, heads = 2, 80, 96, 4

class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.heads = heads
    def forward(self, x):
        batch, steps, width = x.shape
        q, k, v = self.qkv(x).view(batch, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(mixed.transpose(1, 2).reshape(batch, steps, width))
def get_inputs():
    return [torch.randn(batch, steps, width)]
def get_init_inputs():
    return [width, heads]
"""
SCAN_REFERENCE = """
import torch
from torch import nn

batch, steps, channels = 1, 80, 40

class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(channels))
    def forward(self, gate, x):
        state, states = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = torch.sigmoid(gate[:, t]) * state + x[:, t]
            states.append(state)
        return torch.stack(states, dim=1) * self.scale
def get_inputs():
    return [torch.randn(batch, steps, channels), torch.randn(batch, steps, channels)]
def get_init_inputs():
    return [channels]
"""
NETWORK_REFERENCE = """
import torch
from torch import nn

batch, channels, size, width, depth, classes = 3, 5, 20, 72, 4, 12

class Model(nn.Module):
    def __init__(self, channels, width, depth, classes):
        super().__init__()
        widths = [channels, *[width] * depth]
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in zip(widths, widths[1:])
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(depth))
        self.head = nn.Linear(width, classes)
    def forward(self, x):
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(x))
            x = torch.relu(y + x if i else y)
        return self.head(x.mean((2, 3)))
def get_inputs():
    return [torch.randn(batch, channels, size, size)]
def get_init_inputs():
    return [channels, width, depth, classes]
"""
OF_A_KIND = {
    "attention": ATTENTION_REFERENCE,
    "convolution": CONVOLUTION_REFERENCE,
    "network": NETWORK_REFERENCE,
    "scan": SCAN_REFERENCE,
}


def example(language, kind=""):
    return Prompts().example(language, Environment(triton=version("triton")), kind)


@pytest.fixture
def check(tmp_path):
    """Runs a check of a language's example in a process of its own."""

    def check(language, script, device, columns=100, kind="", **variables):
        (tmp_path / "example.py").write_text(example(language, kind))
        constants = f"DEVICE = {device!r}\nCOLUMNS = {columns}\n"
        (tmp_path / "check.py").write_text(constants + script)
        done = subprocess.run(
            [sys.executable, tmp_path / "check.py"],
            env={**os.environ, "TORCH_EXTENSIONS_DIR": str(tmp_path), **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    return check


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_is_a_short_module_with_its_class(language):
    source = example(language)
    assert "ModelNew" in {n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)}
    assert len(source.splitlines()) < 120


def judged(server, language, reference=TRITON_REFERENCE, kind=""):
    """The verdict on a language's example without a GPU."""
    problem = Problem("example", reference, language, "cpu", target="sm_90")
    evaluator = OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=8 << 30)
    try:
        source = example(language, kind)
        return evaluator.evaluate(Candidate(source, language))
    finally:
        evaluator.close()


def test_triton_compiles_for_a_gpu_and_is_correct_when_interpreted(server):
    verdict = judged(server, "triton")
    assert (verdict.status, verdict.precision) == ("passed", "fp32")
    assert verdict.labels == ()


@pytest.mark.parametrize("kind", of_which_fast(sorted(OF_A_KIND), "attention"))
def test_an_example_for_a_kind_compiles_and_is_correct_when_interpreted(server, kind):
    verdict = judged(server, "triton", OF_A_KIND[kind], kind)
    assert (verdict.status, verdict.precision, verdict.labels) == ("passed", "fp32", ())
    assert ", 0 bytes spilled" in verdict.detail


def test_every_example_for_a_kind_is_tested():
    assert {kind for kind in examples_of("triton") if kind} == set(OF_A_KIND)


def test_helion_compiles_for_a_gpu_and_is_correct_when_interpreted():
    pytest.importorskip("helion")
    with closing(ForkServer.start((*PRELOAD_OFFLINE, *DIALECTS["helion"].preload))) as server:
        verdict = judged(server, "helion")
    assert (verdict.status, verdict.precision) == ("passed", "fp32")
    assert verdict.labels == ()


def test_gluon_compiles_for_a_gpu(server):
    verdict = judged(server, "gluon", HALF_REFERENCE)
    assert (verdict.status, verdict.detail.count("registers")) == ("not_run", 3), verdict.reason


@pytest.mark.skipif(bool(cutedsl_host.lacking()), reason=cutedsl_host.lacking() or "")
def test_cute_dsl_compiles_for_a_gpu():
    with closing(ForkServer.start((*PRELOAD_OFFLINE, *DIALECTS["cutedsl"].preload))) as server:
        verdict = judged(server, "cutedsl", RMS_NORM_REFERENCE)
    assert (verdict.status, verdict.detail.count("registers")) == ("not_run", 1), verdict.reason


NETWORK_USES = (
    NETWORK_REFERENCE.replace("Model", "Reference").replace("size, width", "size, W")
    + """
import copy, pickle, example

torch.backends.cudnn.allow_tf32 = False
channels, W, depth, classes = 3, 20, 3, 5
reference = Reference(channels, W, depth, classes).to(DEVICE)
model = example.ModelNew(channels, W, depth, classes).to(DEVICE)
model.load_state_dict(reference.state_dict())

def x(batch=2, size=9):
    return torch.randn(batch, channels, size, size, device=DEVICE)

def compare(model, reference, x):
    result = model(x)
    torch.testing.assert_close(result, reference(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model.state_dict(), reference.state_dict(), rtol=1e-4, atol=1e-4)
    return result

def both(change):
    change(model), change(reference)
    compare(model, reference, x())

with torch.no_grad():
    first = compare(model, reference, x())
    kept = first.clone()
    compare(model, reference, x())
    assert torch.equal(first, kept)
    compare(model, reference, x(3, 6).transpose(2, 3))
    both(nn.Module.eval)
    both(lambda m: m.head.weight.data.mul_(2))
    both(lambda m: m.convs[1].weight.mul_(2))
    both(lambda m: setattr(m.norms[1], "weight", nn.Parameter(m.norms[0].weight + 1)))
    both(nn.Module.train)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        compare(again, copy.deepcopy(reference), x())
    both(lambda m: m.norms[2].eval())
try:
    model(x())
except RuntimeError as error:
    assert "no_grad" in str(error)
else:
    raise SystemExit("no gradients, and no error says so")
"""
)
IN_OTHER_GRAPHS_AND_STREAMS = """
with torch.no_grad():
    reference.eval(), model.eval()
    compare(model, reference, x())
    side, late = torch.cuda.Stream(), x()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        compare(model, reference, late + 1)
        model(late)
    torch.cuda.synchronize()
    outer, inside = torch.cuda.CUDAGraph(), x()
    with torch.cuda.graph(outer):
        outside = model(inside)
    inside.copy_(x())
    outer.replay()
    torch.testing.assert_close(outside, reference(inside), rtol=1e-4, atol=1e-4)
"""


def test_a_network_keeps_statistics_and_follows_weights(check):
    check("triton", NETWORK_USES, "cpu", kind="network", TRITON_INTERPRET="1")


@pytest.mark.gpu
def test_a_network_in_a_cuda_graph_keeps_statistics_and_follows_weights(check):
    script = NETWORK_USES + IN_OTHER_GRAPHS_AND_STREAMS
    check("triton", script, "cuda", kind="network")


@pytest.mark.slow
def test_cpp(check):
    check("cpp", RMS_NORM, "cpu")


@pytest.mark.gpu
def test_triton_on_a_gpu(check):
    check("triton", TRITON, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", OF_A_KIND)
def test_an_example_for_a_kind_on_a_gpu(server, kind):
    problem = Problem("reference", OF_A_KIND[kind], "triton", "cuda:0")
    judge = LocalEvaluator(server, problem, timeout_s=120.0, memory_bytes=1 << 34, brief=True)
    with closing(judge):
        judge.prepare()
        verdict = judge.evaluate(Candidate(example("triton", kind), "triton"))
    assert verdict.status == "passed", verdict


GLUON = """
import torch, example
torch.manual_seed(0)
model = example.ModelNew(128, 264).to(DEVICE)
a, b = torch.randn(2, 100, 128, device=DEVICE, dtype=torch.float16)
with torch.no_grad():
    expected = model.norm(torch.relu(model.linear(a * torch.sigmoid(b))))
    torch.testing.assert_close(model(a, b), expected, rtol=5e-3, atol=5e-3)
"""


@pytest.mark.gpu
def test_gluon_on_a_gpu(check):
    check("gluon", GLUON, "cuda")


@pytest.mark.gpu
def test_cuda(check):
    check("cuda", RMS_NORM, "cuda")


@pytest.mark.gpu
def test_helion_on_a_gpu(check):
    pytest.importorskip("helion")
    check("helion", TRITON, "cuda")


@pytest.mark.gpu
@pytest.mark.skipif(bool(cutedsl_host.lacking()), reason=cutedsl_host.lacking() or "")
def test_cute_dsl_on_a_gpu(check):
    check("cutedsl", RMS_NORM, "cuda")
