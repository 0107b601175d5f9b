"""Profiles, labels, the roofline and feedback of Triton candidates on a real GPU."""

from __future__ import annotations

import textwrap

import pytest
import torch
from on_gpu import DEVICE

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Failed, Fault, Mismatch, Passed
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.products import measure_products, trace
from adaexplore.evaluate.timing.roofline import measure_peaks
from adaexplore.sandbox.user.user_code import Instance
from verdicts import passed

pytestmark = pytest.mark.gpu

LANGUAGE = "triton"
HEADER = """
import torch
from torch import nn
import triton
import triton.language as tl
"""
BUILD = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(512, 512))
        self.out = None
"""
KERNELS = """
@triton.jit
def relu_plus_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) + 1.0, mask=at < n)

@triton.autotune([triton.Config({"BLOCK": b}) for b in (512, 1024)], key=["n"])
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) + 1.0, mask=at < n)

@triton.jit
def hardly_masked(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) + 1.0, mask=at < n - 512 * 64)

@triton.jit
def broken(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, 100)
    tl.store(out_ptr + at, 0.0)
"""


def candidate(body: str, kernels: str = KERNELS) -> Candidate:
    forward = "\n    def forward(self, x):\n" + textwrap.indent(textwrap.dedent(body), " " * 8)
    return Candidate(HEADER + kernels + BUILD + forward, "triton")


def launch(kernel: str, out: str = "torch.empty_like(h)") -> str:
    return f"""
        h = x @ self.weight
        out = {out}
        n = h.numel()
        {kernel}[(triton.cdiv(n, 1024),)](h, out, n, BLOCK=1024)
        return out
    """


TUNED = candidate("""
    h = x @ self.weight
    out = torch.empty_like(h)
    tuned[lambda chosen: (triton.cdiv(h.numel(), chosen["BLOCK"]),)](h, out, h.numel())
    return out
""")


HONEST = candidate(launch("relu_plus_one"))
ONLY_TORCH = "return torch.relu(x @ self.weight) + 1"
DECOY = candidate(f"""
    scratch = torch.empty_like(x)
    relu_plus_one[(triton.cdiv(x.numel(), 1024),)](x, scratch, x.numel(), BLOCK=1024)
    {ONLY_TORCH}
""")


def profiled(judge, tried: Candidate) -> Passed:
    verdict = passed(judge, tried)
    assert verdict.profile is not None, verdict.detail
    return verdict


RNN = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8, num_layers=3)

    def forward(self, x):
        return self.rnn(x)[0]

def get_inputs():
    return [torch.randn(20, 4, 8)]
"""


def test_the_chain_of_a_recurrence_has_its_steps(shared_gpu, tmp_path):
    instance = Instance.of(Problem("rnn", RNN, "triton", DEVICE), tmp_path)
    assert trace(instance, instance.inputs(0)).depth == 20 + 3 - 1


def test_a_convolution_is_timed_in_fp16_and_tf32(shared_gpu, tmp_path):
    source = RNN.replace("nn.LSTM(8, 8, num_layers=3)", "nn.Conv2d(1, 8, 3)")
    source = source.replace("self.rnn(x)[0]", "self.rnn(x[:, None])")
    instance = Instance.of(Problem("convolution", source, "triton", DEVICE), tmp_path)
    found = measure_products(trace(instance, instance.inputs(0)), DEVICE)
    assert found.library_us.keys() == {"half", "tf32"}
    assert found.timed == 1


class TestProfile:
    def test_own_and_library_kernels_of_a_call(self, judge):
        verdict = profiled(judge, HONEST)
        uses = {use.origin: use for use in verdict.profile.kernels}
        assert (uses["custom"].name, uses["custom"].launches) == ("relu_plus_one", 1.0)
        assert uses["cublas"].launches >= 1.0
        assert 0.02 < verdict.profile.custom_share < 1
        assert verdict.labels == ("library:cublas",)

    def test_how_a_triton_kernel_was_launched(self, judge):
        [use] = [u for u in profiled(judge, HONEST).profile.kernels if u.origin == "custom"]
        assert use.launch.grid == (4096 * 512 // 1024, 1, 1)
        assert use.launch.block == (128, 1, 1)
        assert use.launch.registers > 0
        assert use.launch.spills_bytes == 0
        assert use.given_bytes == 4 * 2 * 4096 * 512
        assert 0 < use.launch.occupancy <= 1

    def test_what_an_autotuner_tried_has_its_times(self, judge):
        [search] = profiled(judge, TUNED).profile.autotunings
        assert (search.kernel, search.arguments) == ("tuned", f"n={4096 * 512}")
        assert search.parameters == ("BLOCK", "num_warps", "num_stages")
        assert {each.values for each in search.configurations} == {
            ("512", "4", "3"),
            ("1024", "4", "3"),
        }
        fastest, slowest = (each.time_us for each in search.configurations)
        assert 1 < fastest <= slowest < 1000  # 16 MB
        assert (search.tried, search.refused) == (2, 0)

    def test_a_kernel_that_is_not_autotuned_has_no_search(self, judge):
        assert profiled(judge, HONEST).profile.autotunings == ()

    def test_the_products_of_the_reference_are_timed(self, judge):
        found = judge.prepare().products
        assert (found.depth, found.timed) == (1, 1)
        assert found.flops == found.timed_flops == 2 * 4096 * 512 * 512
        assert found.library_us.keys() == {"half", "tf32"}
        assert all(1 < us < 1000 for us in found.library_us.values())
        assert 0.1 < found.step_us < 50

    def test_the_roofline_is_one(self, judge):
        verdict = profiled(judge, HONEST)
        assert 0 < verdict.roofline.share < 1.2
        facts = judge.prepare().roofline
        assert facts.bytes == 4 * (2 * 4096 * 512 + 512 * 512)
        assert facts.flops == 2 * 4096 * 512 * 512
        assert facts.unavoidable_bytes >= 4 * 4096 * 512


class TestLabels:
    def test_nothing_but_libraries(self, judge):
        assert profiled(judge, candidate(ONLY_TORCH, kernels="")).labels[0] == "no-custom-kernel"

    def test_a_kernel_that_is_never_launched(self, judge):
        assert profiled(judge, candidate(ONLY_TORCH)).labels[0] == "own-kernels-not-launched"

    def test_a_kernel_whose_result_is_not_used(self, judge):
        assert profiled(judge, DECOY).labels[0] == "decoy"

    @pytest.mark.parametrize(
        "tried",
        [
            candidate(launch("relu_plus_one", "self.out = torch.zeros_like(h)")),
            candidate(launch("relu_plus_one", "h")),
            TUNED,
        ],
        ids=["own buffer", "in place", "autotuned"],
    )
    def test_no_honest_kernel_is_called_a_decoy(self, judge, tried):
        verdict = profiled(judge, tried)
        assert "decoy" not in verdict.labels
        assert verdict.profile.custom_share > 0.02

    def test_compiled_at_run_time(self, judge):
        body = "return self.compiled(x @ self.weight)"
        build = BUILD + "        self.compiled = torch.compile(lambda h: torch.relu(h) + 1)\n"
        tried = candidate(body, kernels="")
        verdict = profiled(judge, Candidate(tried.source.replace(BUILD, build), "triton"))
        assert "library:inductor" in verdict.labels or "no-custom-kernel" in verdict.labels


class TestRequired:
    def test_own_kernels_that_do_the_work_pass(self, evaluator_of):
        assert isinstance(evaluator_of(require_custom=True).evaluate(HONEST), Passed)

    @pytest.mark.parametrize(
        ("tried", "reason"),
        [
            (DECOY, "its result is the same without its own kernels"),
            (candidate(ONLY_TORCH), "its own kernels take 0 % of the device time"),
        ],
        ids=["decoy", "torch"],
    )
    def test_those_that_do_not_are_rejected(self, evaluator_of, tried, reason):
        verdict = evaluator_of(require_custom=True).evaluate(tried)
        assert (verdict.status, verdict.reason) == ("rejected", reason)


class TestFeedback:
    def test_a_compile_error_names_the_kernel_s_line(self, judge):
        verdict = judge.evaluate(candidate(launch("broken")))
        assert isinstance(verdict, Failed)
        assert verdict.status == "compile_error"
        assert isinstance(verdict.feedback, Fault)
        assert verdict.feedback.frame == "broken"
        assert verdict.feedback.source_line.endswith("tl.arange(0, 100)")

    def test_a_wrong_mask_leaves_the_last_rows(self, judge):
        verdict = judge.evaluate(candidate(launch("hardly_masked", "torch.zeros_like(h)")))
        assert isinstance(verdict, Failed)
        assert isinstance(verdict.feedback, Mismatch)
        assert verdict.feedback.pattern == "zero; the last 64 of 4096 indices of axis 0"


def test_the_peaks_of_this_gpu_are_believable():
    peaks = measure_peaks(DEVICE, clock_for(DEVICE), 1 << 20, "fp32")
    assert 1e11 < peaks.bytes_per_s < 2e13
    assert 1e12 < peaks.flops_per_s["fp32"] < peaks.flops_per_s["half"] < 1e16
    assert 0 < peaks.overhead_us < 1000
    assert torch.get_float32_matmul_precision() == "highest"
