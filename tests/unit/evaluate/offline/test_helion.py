"""Helion's kernels without a GPU: interpreted, compiled for the target, compiled ahead."""

import base64
import pickle

import pytest
import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Access, Problem
from adaexplore.core.verdict.evaluation import Fault
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.evaluate.wire.messages import Build, encode
from adaexplore.languages import DIALECTS
from adaexplore.run.processes import PRELOAD_OFFLINE
from adaexplore.sandbox.process import ForkServer
from adaexplore.sandbox.user.values import Inputs
from verdicts import failed, passed

pytest.importorskip("helion")

REFERENCE = """
import torch
from torch import nn

rows = 48
inner = 64
outer = 32

class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(rows, inner)]

def get_init_inputs():
    return [inner, outer]
"""
CONFIG = "config=helion.Config(block_sizes=[16, 32, 16])"
SOURCE = f"""
import helion
import helion.language as hl
import torch
from torch import nn

@helion.kernel({CONFIG}, dot_precision="ieee")
def linear_relu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    rows, inner = x.size()
    outer, _ = weight.size()
    out = x.new_empty(rows, outer)
    for m, n in hl.tile([rows, outer]):
        total = hl.zeros([m, n], dtype=torch.float32)
        for k in hl.tile(inner):
            total = torch.addmm(total, x[m, k], weight[n, k].T)
        out[m, n] = torch.relu(total + bias[n])
    return out

class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return linear_relu(x, self.linear.weight, self.linear.bias)
"""
LIST = CONFIG.replace("config=", "configs=[") + ", helion.Config(block_sizes=[32, 16, 32])]"
BY_TMA = CONFIG.replace("16])", '16], indexing="tensor_descriptor", pid_type="persistent_blocked")')


@pytest.fixture(scope="module")
def server():
    server = ForkServer.start((*PRELOAD_OFFLINE, *DIALECTS["helion"].preload))
    yield server
    server.close()


@pytest.fixture(scope="module")
def judge(server):
    problem = Problem("example", REFERENCE, "helion", "cpu", target="sm_90")
    judge = OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=8 << 30)
    yield judge
    judge.close()


def changed(old: str, new: str) -> Candidate:
    assert old in SOURCE
    return Candidate(SOURCE.replace(old, new), "helion")


@pytest.mark.parametrize("config", [CONFIG, LIST, BY_TMA], ids=["one", "a list", "descriptors"])
def test_a_correct_candidate_passes_and_its_kernel_is_compiled(judge, config):
    verdict = passed(judge, changed(CONFIG, config))
    assert verdict.precision == "fp32"
    assert verdict.labels == ()
    assert verdict.detail.startswith("_helion_linear_relu: 4 warps")


@pytest.mark.parametrize(
    ("old", "new"),
    [("total + bias[n]", "total"), ("hl.tile(inner)", "hl.tile(inner - 1)")],
    ids=["bias", "bounds"],
)
def test_a_wrong_candidate_fails(judge, old, new):
    assert failed(judge, changed(old, new)).status == "wrong_output"


def test_tf32_fails_where_fp32_is_required(judge):
    assert failed(judge, changed(', dot_precision="ieee"', "")).status == "wrong_output"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("total + bias[n]", "total + bias", "out[m, n] = torch.relu", "must match the size"),
        ("[16, 32, 16]", "[16, 32]", "", "expected 3 block sizes"),
        (CONFIG, "", "", "Autotuning is disabled"),
    ],
    ids=["type", "configuration", "search"],
)
def test_an_error_of_helion_is_quoted_with_its_line(judge, old, new, line, words):
    tried = changed(f"{CONFIG}, " if not new else old, new)
    verdict = failed(judge, tried)
    assert verdict.status == "compile_error"
    assert words in verdict.reason
    assert isinstance(verdict.feedback, Fault)
    assert verdict.feedback.source_line.startswith(line)


def test_kernels_of_all_configurations_are_compiled_ahead(server):
    def pickled(value):
        return base64.b64encode(pickle.dumps(value)).decode()

    request = Build(
        source=changed(CONFIG, LIST).source,
        capability=(9, 0),
        seed=0,
        mode="as-built",
        access=Access(),
        init=pickled(Inputs((64, 32), {})),
        inputs=(pickled(Inputs((torch.empty(48, 64, device="meta"),), {})),),
        extensions=False,
    )
    worker = server.spawn("adaexplore.evaluate.candidate.worker:main", name="candidate")
    try:
        assert worker.call(encode(request), 120.0) == {}
        found = [path.name for path in worker.folder.glob("triton/*/*.cubin")]
    finally:
        worker.end()
    assert found == ["_helion_linear_relu.cubin"] * 2
