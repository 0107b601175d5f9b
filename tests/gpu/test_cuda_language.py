"""CUDA C++ candidates on a real GPU: built ahead, for it alone, told whose work is whose."""

from __future__ import annotations

import pytest
from on_gpu import DEVICE

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Fault, Mismatch
from adaexplore.languages.cuda import toolkit
from adaexplore.sandbox.jobs import run_job
from verdicts import failed, passed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(toolkit.lacking()), reason=toolkit.lacking() or ""),
]

LANGUAGE = "cuda"
SOURCE = '''
import os
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>
#include <cstdint>
#include <stdexcept>

__global__ void __launch_bounds__(256) relu_plus_one(const float4* x, float4* out, int quads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < quads) {
    const float4 v = x[i];
    out[i] = make_float4(fmaxf(v.x, 0.0f) + 1.0f, fmaxf(v.y, 0.0f) + 1.0f,
                         fmaxf(v.z, 0.0f) + 1.0f, fmaxf(v.w, 0.0f) + 1.0f);
  }
}

void launch(std::uintptr_t x, std::uintptr_t out, int quads, std::uintptr_t stream) {
  relu_plus_one<<<(quads + 255) / 256, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(out), quads);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
"""
BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void launch(std::uintptr_t, std::uintptr_t, int, std::uintptr_t);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""

kernels = load_inline("relu_plus_one", BINDING, CUDA, no_implicit_headers=True)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(512, 512))

    def forward(self, x):
        h = x @ self.weight
        out = torch.empty_like(h)
        stream = torch.cuda.current_stream().cuda_stream
        kernels.launch(h.data_ptr(), out.data_ptr(), h.numel() // 4, stream)
        return out
'''
GREEDY = """__shared__ float4 s[20000];
    s[threadIdx.x] = x[i];
    __syncthreads();
    const float4 v = s[i % 20000]"""
ONLY_TORCH = "return torch.relu(x @ self.weight) + 1"


def changed(old: str, new: str) -> Candidate:
    assert old in SOURCE
    return Candidate(SOURCE.replace(old, new), "cuda")


HONEST = Candidate(SOURCE, "cuda")
UNUSED = changed("h = x @ self.weight", ONLY_TORCH)


def test_nvcc_builds_for_this_gpu_where_candidates_are(server):
    machine = run_job(
        server, "adaexplore.evaluate.timing.environment:describe", {"device": DEVICE}, 60.0
    )
    found = run_job(
        server,
        "adaexplore.languages.cuda.toolkit:try_building",
        machine["environment"],
        120.0,
        confined="gpu",
    )
    assert found["versions"]["nvcc"].split(".")[0].isdigit()


class TestHonest:
    def test_its_kernel_is_its_own_with_its_launch(self, judge):
        verdict = passed(judge, HONEST)
        assert verdict.profile is not None, verdict.detail
        [own] = [use for use in verdict.profile.kernels if use.origin == "custom"]
        assert own.name.startswith("relu_plus_one(")
        assert own.launch.grid == (4096 * 512 // 4 // 256, 1, 1)
        assert own.launch.block == (256, 1, 1)
        assert verdict.labels == ("library:cublas",)

    def test_it_passes_where_own_kernels_are_required(self, evaluator_of):
        passed(evaluator_of(require_custom=True), HONEST)

    def test_it_is_built_for_this_gpu_alone(self, judge):
        check = """
import glob
capability = "%d%d" % torch.cuda.get_device_capability()
[rules] = glob.glob("extensions/relu_plus_one/build.ninja")
targets = [word for word in open(rules).read().split() if word.startswith("-gencode")]
assert targets == [f"-gencode=arch=compute_{capability},code=sm_{capability}"], targets

class ModelNew"""
        passed(judge, changed("\nclass ModelNew", check))

    def test_it_is_built_before_its_process_uses_the_gpu(self, judge):
        order = """
built = os.path.exists("extensions/relu_plus_one/relu_plus_one.so")
assert built or not os.environ.get("CUDA_VISIBLE_DEVICES", "there")
kernels ="""
        passed(judge, changed("\nkernels =", order))

    def test_what_is_built_at_the_first_call_is_built_ahead_too(self, judge):
        lazily = SOURCE.replace("\nkernels = load", "\ndef build():\n    return load")
        inside = """built = os.path.exists("extensions/relu_plus_one/relu_plus_one.so")
        assert built or not os.environ.get("CUDA_VISIBLE_DEVICES", "there")
        self.kernels = getattr(self, "kernels", None) or build()
        self.kernels.launch("""
        passed(judge, Candidate(lazily.replace("kernels.launch(", inside), "cuda"))


class TestLabels:
    def test_nothing_but_torch(self, judge):
        imports, _, rest = UNUSED.source.partition("CUDA =")
        module = imports + rest[rest.index("class ModelNew") :]
        assert passed(judge, Candidate(module, "cuda")).labels[0] == "no-custom-kernel"

    def test_a_kernel_that_is_never_launched(self, judge):
        assert passed(judge, UNUSED).labels[0] == "own-kernels-not-launched"

    def test_which_is_refused_where_own_kernels_are_required(self, evaluator_of):
        verdict = failed(evaluator_of(require_custom=True), UNUSED)
        assert verdict.status == "rejected"
        assert verdict.reason == "its own kernels take 0 % of the device time"


class TestFeedback:
    @pytest.mark.parametrize(
        ("old", "new", "line", "words"),
        [
            ("fmaxf(v.x, 0.0f)", "fmaxf(v.x, zero)", "out[i] = make_float4(", "is undefined"),
            ("const float4 v = x[i]", GREEDY, "__global__ void", "uses too much shared data"),
            ("#include <cstdint>", "#include <no_such.h>", "#include <no_such.h>", "No such file"),
        ],
        ids=["nvcc", "ptxas", "preprocessor"],
    )
    def test_a_compile_error_names_the_line(self, judge, old, new, line, words):
        tried = changed(old, new)
        verdict = failed(judge, tried)
        assert verdict.status == "compile_error"
        assert isinstance(verdict.feedback, Fault)
        assert words in verdict.feedback.message
        told = verdict.feedback
        assert told.line > 0
        assert tried.source.splitlines()[told.line - 1].strip() == told.source_line
        assert told.source_line.startswith(line)
        assert verdict.cost.device_s == 0.0

    def test_rows_that_are_left_out_are_seen(self, judge):
        tried = changed("if (i < quads)", "if (i < quads - 128 * 64)")
        zeroed = tried.source.replace("torch.empty_like(h)", "torch.zeros_like(h)")
        verdict = failed(judge, Candidate(zeroed, "cuda"))
        assert verdict.status == "wrong_output"
        assert isinstance(verdict.feedback, Mismatch)
        assert verdict.feedback.pattern == "zero; the last 64 of 4096 indices of axis 0"

    def test_a_write_out_of_bounds_ends_its_process_and_no_other(self, judge):
        verdict = failed(judge, changed("out[i] =", "out[i + (1LL << 36)] = out[i] ="))
        assert verdict.status == "runtime_error"
        assert "illegal memory access" in verdict.reason
        passed(judge, HONEST)
