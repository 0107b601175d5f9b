"""CuTe DSL candidates on a real GPU: compiled before it is taken, told whose work is whose."""

from __future__ import annotations

from contextlib import closing

import pytest
from on_gpu import DEVICE, REFERENCE

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Fault, Mismatch
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.languages import DIALECTS
from adaexplore.languages.cutedsl import host
from adaexplore.run.processes import PRELOAD
from adaexplore.sandbox.process import ForkServer
from cutedsl_sources import HANG, SOURCE, changed
from verdicts import failed, passed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(host.lacking()), reason=host.lacking() or ""),
]

LANGUAGE = "cutedsl"
STORE = "        out[at] = cutlass.max(x[at], 0.0) + 1.0"


@pytest.fixture(scope="module")
def server():
    with closing(ForkServer.start((*PRELOAD, *DIALECTS[LANGUAGE].preload))) as server:
        yield server


def candidate(source: str) -> Candidate:
    return Candidate(source, LANGUAGE)


def test_its_kernel_is_its_own_with_its_launch(judge):
    verdict = passed(judge, candidate(SOURCE))
    assert verdict.profile is not None, verdict.detail
    [own] = [use for use in verdict.profile.kernels if use.origin == "custom"]
    assert own.name.startswith("kernel_cutlass_relu_plus_one_")
    assert own.launch.grid == (4096 * 512 // 256, 1, 1)
    assert own.launch.block == (256, 1, 1)
    assert verdict.labels == ("library:cublas",)


def test_one_that_is_compiled_at_its_first_call_on_tensors_passes(judge):
    lazy = changed(
        "        compiled()(h.view(-1), out.view(-1))",
        "        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)\n"
        "        launch(from_dlpack(h.view(-1)), from_dlpack(out.view(-1)), stream)",
    ).replace("        compiled()\n", "")
    passed(judge, candidate(f"import cuda.bindings.driver as cuda\n{lazy}"))


def test_a_wrong_result_is_refused(judge):
    verdict = failed(judge, candidate(changed("cutlass.max(x[at], 0.0) + 1.0", "x[at] + 1.0")))
    assert verdict.status == "wrong_output"


def test_rows_that_are_left_out_are_seen(judge):
    left_out = changed("if at < cute.size(x):", "if at < 4032 * 512:")
    verdict = failed(judge, candidate(left_out.replace("empty_like", "zeros_like")))
    assert verdict.status == "wrong_output"
    assert isinstance(verdict.feedback, Mismatch)
    assert verdict.feedback.pattern == "zero; the last 64 of 4096 indices of axis 0"


def test_a_kernel_that_does_not_compile_names_its_line(judge):
    verdict = failed(judge, candidate(changed(STORE, f"{STORE}\n        return")))
    assert verdict.status == "compile_error"
    assert isinstance(verdict.feedback, Fault)
    assert verdict.feedback.source_line == "return"


def test_more_threads_than_a_block_has_are_refused(judge):
    verdict = failed(judge, candidate(changed("THREADS = 256", "THREADS = 2048")))
    assert verdict.status in ("compile_error", "runtime_error")


def test_a_hang_ends_within_its_limit_and_harms_no_other(server):
    problem = Problem("example", REFERENCE, LANGUAGE, DEVICE)
    judge = LocalEvaluator(server, problem, timeout_s=15.0, memory_bytes=1 << 34, brief=True)
    with closing(judge):
        assert failed(judge, candidate(changed(STORE, HANG))).status == "timeout"
        passed(judge, candidate(SOURCE))
