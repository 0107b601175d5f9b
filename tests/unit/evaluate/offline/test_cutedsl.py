"""CuTe DSL's kernels without a GPU: compiled for the target, never run, never correct."""

from contextlib import closing

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Checks, Problem
from adaexplore.core.verdict.evaluation import Fault
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.languages.cutedsl import host
from adaexplore.run.processes import start_server
from cutedsl_sources import SOURCE, changed
from verdicts import failed

pytestmark = pytest.mark.skipif(bool(host.lacking()), reason=host.lacking() or "")

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
CALL = "        compiled()(h.view(-1), out.view(-1))\n"
LAZY = """
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        x, y = from_dlpack(h.view(-1), assumed_align=16), from_dlpack(out.view(-1))
"""


@pytest.fixture(scope="module")
def told():
    """Judges a candidate's source for sm_90."""
    checks = Checks(require_custom=True)
    problem = Problem("example", REFERENCE, "cutedsl", "cpu", checks=checks, target="sm_90")
    with closing(start_server(problem)) as server:
        evaluator = OfflineEvaluator(server, problem, timeout_s=120.0, memory_bytes=8 << 30)
        with closing(evaluator):
            yield lambda source: failed(evaluator, Candidate(source, "cutedsl"))


def test_one_that_compiles_was_not_run(told):
    verdict = told(SOURCE)
    assert verdict.status == "not_run"
    assert verdict.reason == (
        "1 kernel compiles for sm_90; not run here: CuTe DSL runs on a GPU only, so nothing is "
        "known of its results"
    )
    assert verdict.detail.startswith("kernel_cutlass_relu_plus_one_")
    needs = "8 warps, 10 registers, 0 bytes spilled, 0 bytes of shared memory"
    assert verdict.detail.endswith(needs)


@pytest.mark.parametrize(
    "call",
    ["cute.compile(launch, x, y, stream)(x, y, stream)", "launch(x, y, stream)"],
    ids=["compiled at the first call", "called by its decorator"],
)
def test_tensors_without_data_are_passed_as_those_of_a_gpu(told, call):
    source = changed(CALL, f"{LAZY}        {call}\n").replace("        compiled()\n", "")
    verdict = told(f"import cuda.bindings.driver as cuda\n{source}")
    assert verdict.status == "not_run", verdict.reason
    assert "_tensorptrf32gmemalign16o2097152" in verdict.detail


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("cutlass.max", "cutlass.largest", "out[at] =", "no attribute 'largest'"),
        ("0.0) + 1.0", "0.0) + 1.0\n        return", "return", "Early exit (return) is not allo"),
        ("THREADS = 256", "THREADS = 2048", "", "is 2,048 threads; a block of sm_90 has at most"),
        (
            "launch(grid",
            "launch(smem=300_000, grid",
            "",
            "needs 300,000 bytes of shared memory; a block of sm_90 has at most 232,448",
        ),
    ],
    ids=["missing function", "early return", "too many threads", "too much shared memory"],
)
def test_one_that_does_not_compile_or_fit_is_refused_and_told_why(told, old, new, line, words):
    verdict = told(changed(old, new))
    assert verdict.status == "compile_error"
    assert words in verdict.reason
    assert isinstance(verdict.feedback, Fault)
    assert verdict.feedback.source_line.startswith(line)
    assert "\x1b" not in verdict.reason + verdict.detail


def test_instructions_of_the_target_are_known(told):
    fence = "cute.nvgpu.warpgroup.fence()  # of wgmma, which sm_90 has alone"
    verdict = told(changed("        out[at] =", f"        {fence}\n        out[at] ="))
    assert verdict.status == "not_run", verdict.reason


def test_a_persistent_kernel_is_told_the_multiprocessors_of_the_target(told):
    ask = "cutlass.utils.HardwareInfo().get_max_active_clusters(2)"
    verdict = told(changed(CALL, f"        assert {ask} == 132 // 2\n{CALL}"))
    assert verdict.status == "not_run", verdict.reason


@pytest.mark.parametrize(
    "tensor",
    [
        "cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 16)",
        "cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 1000), layout)",
    ],
    ids=["at the launch", "in the code"],
)
def test_shared_memory_is_counted(told, tensor):
    uses = f"""layout = cute.make_layout(1000)
        shared = {tensor}
        shared[thread] = x[at]
        cute.arch.sync_threads()
        out[at] = shared[255 - thread] + 1.0"""
    verdict = told(changed("out[at] = cutlass.max(x[at], 0.0) + 1.0", uses))
    assert verdict.status == "not_run", verdict.reason
    assert verdict.detail.endswith(" 4000 bytes of shared memory")


def test_one_that_launches_nothing_is_refused_where_own_kernels_are_required(told):
    verdict = told(changed(CALL, "        out = h.relu() + 1\n"))
    assert (verdict.status, verdict.reason) == ("rejected", "it launches no kernel of its own")
