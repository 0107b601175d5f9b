"""Helion candidates on a real GPU: compiled ahead, told whose work is whose and what is wrong."""

from __future__ import annotations

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Fault, Mismatch
from adaexplore.languages import DIALECTS
from adaexplore.languages.helion import host as helion_host
from adaexplore.run.processes import PRELOAD
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer
from verdicts import failed, passed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(helion_host.lacking()), reason=helion_host.lacking() or ""),
]

LANGUAGE = "helion"
CONFIG = "config=helion.Config(block_sizes=[16, 512])"
SOURCE = f"""
import helion
import helion.language as hl
import torch
from torch import nn

@helion.kernel({CONFIG})
def relu_plus_one(h: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(h)
    for m, n in hl.tile(h.size()):
        out[m, n] = torch.relu(h[m, n]) + 1
    return out

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(512, 512))

    def forward(self, x):
        return relu_plus_one(x @ self.weight)
"""
LIST = CONFIG.replace("config=", "configs=[") + ", helion.Config(block_sizes=[32, 256])]"
PRODUCT = """
@helion.kernel(
    config=helion.Config(
        block_sizes=[128, 128, 32], l2_groupings=[8], num_warps=8, num_stages=3,
        pid_type="persistent_interleaved", indexing="tensor_descriptor",
    ),
    dot_precision="tf32x3",
)
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.size(0), w.size(1))
    for m, n in hl.tile([x.size(0), w.size(1)]):
        total = hl.zeros([m, n], dtype=torch.float32)
        for k in hl.tile(x.size(1)):
            total = torch.addmm(total, x[m, k], w[k, n])
        out[m, n] = torch.relu(total) + 1
    return out

class ModelNew"""


def changed(old: str, new: str) -> Candidate:
    assert old in SOURCE
    return Candidate(SOURCE.replace(old, new), "helion")


HONEST = Candidate(SOURCE, "helion")
UNUSED = changed("relu_plus_one(x @ self.weight)", "torch.relu(x @ self.weight) + 1")
DECOY = changed(
    "return relu_plus_one(x @ self.weight)",
    "h = x @ self.weight\n        relu_plus_one(h)\n        return torch.relu(h) + 1",
)


@pytest.fixture(scope="module")
def server():
    server = ForkServer.start((*PRELOAD, *DIALECTS["helion"].preload))
    yield server
    server.close()


def test_it_generates_where_candidates_are(server):
    found = run_job(server, DIALECTS["helion"].trial, {}, 120.0, confined="gpu")
    assert found["helion"].split(".")[0].isdigit(), found


class TestHonest:
    def test_its_kernel_is_its_own_with_its_launch(self, judge):
        verdict = passed(judge, HONEST)
        assert verdict.profile is not None, verdict.detail
        [own] = [use for use in verdict.profile.kernels if use.origin == "custom"]
        assert own.name == "_helion_relu_plus_one"
        assert own.launch.grid == (4096 // 16, 1, 1)
        assert own.launch.block == (128, 1, 1)
        assert verdict.labels == ("library:cublas",)

    def test_it_passes_where_own_kernels_are_required(self, evaluator_of):
        passed(evaluator_of(require_custom=True), HONEST)

    def test_a_list_of_configurations_is_timed(self, judge):
        verdict = passed(judge, changed(CONFIG, LIST))
        assert any(use.name == "_helion_relu_plus_one" for use in verdict.profile.kernels)

    def test_a_product_on_tensor_cores_by_tma(self, evaluator_of):
        source = changed("\nclass ModelNew", PRODUCT).source
        source = source.replace("relu_plus_one(x @ self.weight)", "product(x, self.weight)")
        verdict = passed(evaluator_of(require_custom=True), Candidate(source, "helion"))
        assert verdict.precision == "fp32"
        assert [use.name for use in verdict.profile.kernels] == ["_helion_product"]

    def test_its_kernel_is_compiled_before_it_is_first_launched(self, judge):
        watched = """cached = "triton/*/_helion_relu_plus_one.cubin"
        count = len(glob.glob(cached))
        out = relu_plus_one(x @ self.weight)
        assert len(glob.glob(cached)) == count, "compiled at its first call"
        return out"""
        source = changed("import helion\n", "import glob\nimport helion\n").source
        source = source.replace("return relu_plus_one(x @ self.weight)", watched)
        passed(judge, Candidate(source, "helion"))


class TestLabels:
    def test_kernels_that_are_not_launched(self, judge):
        assert passed(judge, UNUSED).labels[0] == "own-kernels-not-launched"

    def test_kernels_that_do_not_matter(self, judge):
        assert passed(judge, DECOY).labels[0] == "decoy"

    def test_either_is_refused_where_own_kernels_are_required(self, evaluator_of):
        for tried in (UNUSED, DECOY):
            assert failed(evaluator_of(require_custom=True), tried).status == "rejected"


class TestFeedback:
    @pytest.mark.parametrize(
        ("old", "new", "line", "words"),
        [
            ("h[m, n]) + 1", "h[m, n]) + h[0, :]", "out[m, n] =", "must match the size"),
            ("[16, 512]", "[16]", "", "expected 2 block sizes"),
            (CONFIG, "", "", "Autotuning is disabled"),
        ],
        ids=["type", "configuration", "search"],
    )
    def test_what_helion_refuses_names_the_line(self, judge, old, new, line, words):
        verdict = failed(judge, changed(old, new))
        assert verdict.status == "compile_error"
        assert words in verdict.reason
        assert isinstance(verdict.feedback, Fault)
        assert verdict.feedback.source_line.startswith(line)

    def test_rows_that_are_left_out_are_seen(self, judge):
        tried = changed("hl.tile(h.size())", "hl.tile([h.size(0) - 64, h.size(1)])")
        zeroed = tried.source.replace("empty_like", "zeros_like")
        verdict = failed(judge, Candidate(zeroed, "helion"))
        assert verdict.status == "wrong_output"
        assert isinstance(verdict.feedback, Mismatch)
        assert verdict.feedback.pattern == "zero; the last 64 of 4096 indices of axis 0"
