"""The pretended GPU that host code written for CUDA meets on a machine without one."""

import pytest
from sources import DOUBLE, DOUBLE_KERNEL, HEADER, changed

ASKED = {
    "of a tensor": "assert x.is_cuda and not x.is_cpu and x.device.type == 'cuda'",
    "of its index": "assert x.device.index == 0 and x.get_device() == 0",
    "of a device by name": "assert x.device == torch.device('cuda:0')",
    "of CUDA": "assert torch.cuda.is_available() and torch.cuda.device_count() == 1",
    "of the capability": "assert torch.cuda.get_device_capability() == (9, 0)",
    "of the multiprocessors": (
        "assert torch.cuda.get_device_properties(x.device).multi_processor_count == 132"
    ),
    "of the shared memory that a block has without asking": (
        "assert torch.cuda.get_device_properties(0).shared_memory_per_block == 49152"
    ),
    "to move": "x = x.cuda().to('cuda').to(x.device, torch.float32).to(device='cuda:0')",
    "for memory": "x = x + torch.zeros(1, device='cuda') + torch.ones(1, device=x.device) - 1",
    "for a device's memory by default": "with torch.device('cuda'): x = x + torch.zeros(1)",
    "to wait": "torch.cuda.synchronize(); torch.cuda.current_stream().synchronize()",
    "for a stream": "with torch.cuda.stream(torch.cuda.Stream()): x = x + 0",
    "for a device": "with torch.cuda.device(x.device): x = x + 0",
    "for a module": "x = torch.nn.Identity().cuda()(x)",
    "as TorchInductor's wrappers do": (
        "from torch._C import _cuda_getCurrentRawStream as get_raw_stream\n"
        "        empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda\n"
        "        with torch.cuda._DeviceGuard(0):\n"
        "            assert get_raw_stream(0) == 0\n"
        "            buf0 = empty_strided_cuda((4, 2), (2, 1), torch.float16)\n"
        "            assert buf0.is_cuda and buf0.stride() == (2, 1)"
    ),
    "to compile": "x = torch.compile(lambda t: t + 0)(x)",
    "for pinned memory": "x = x + torch.zeros(1, pin_memory=True).cuda()",
    "for float16": (
        "with torch.autocast('cuda', torch.float16):\n"
        "            assert (x[:4].view(2, 2) @ x[:4].view(2, 2)).dtype is torch.float16\n"
        "            assert torch.softmax(x[:4].half(), 0).dtype is torch.float32"
    ),
    "for bfloat16": (
        "with torch.cuda.amp.autocast(dtype=torch.bfloat16):\n"
        "            assert torch.mm(x[:4].view(2, 2), x[:4].view(2, 2)).dtype is torch.bfloat16"
    ),
}


class TestQuestions:
    def test_all_questions_are_answered_in_one_candidate(self, judge):
        asking = "\n".join(f"        {question}" for question in ASKED.values())
        asking = f"{asking}\n        out = torch.empty_like"
        verdict = judge(DOUBLE, changed(DOUBLE_KERNEL, "        out = torch.empty_like", asking))
        assert (verdict.status, getattr(verdict, "reason", "")) == ("passed", "")

    @pytest.mark.slow
    @pytest.mark.parametrize("what", ASKED)
    def test_each_question_is_answered_as_on_a_gpu(self, judge, what):
        asking = f"        {ASKED[what]}\n        out = torch.empty_like"
        verdict = judge(DOUBLE, changed(DOUBLE_KERNEL, "        out = torch.empty_like", asking))
        assert (verdict.status, getattr(verdict, "reason", "")) == ("passed", "")

    def test_a_cuda_graph_cannot_be_replayed(self, judge):
        asking = "        graph = torch.cuda.CUDAGraph()\n        out = torch.empty_like"
        verdict = judge(DOUBLE, changed(DOUBLE_KERNEL, "        out = torch.empty_like", asking))
        assert verdict.status == "rejected"
        assert "launch without one where torch.cuda.is_current_stream_capturing()" in verdict.reason

    @pytest.mark.slow
    def test_reading_a_number_from_a_tensor_does_not_fail(self, judge):
        asking = "        if float(x.abs().max()) < 0: x = -x\n        out = torch.empty_like"
        source = changed(DOUBLE_KERNEL, "        out = torch.empty_like", asking)
        assert judge(DOUBLE, source).status == "passed"

    def test_unwritten_memory_is_a_wrong_output(self, judge):
        source = HEADER + (
            "class ModelNew(nn.Module):\n    def forward(self, x): return torch.empty_like(x)\n"
        )
        verdict = judge(DOUBLE.replace("x * 2", "x * 0"), source)
        assert verdict.status == "wrong_output"
        assert verdict.feedback.nans > 0


AUTOTUNED = changed(
    changed(
        DOUBLE_KERNEL,
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b, w in CONFIGS], ['n'])\n"
        "@triton.jit",
    ),
    "(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)",
    "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, out, x.numel())",
)


class TestAutotune:
    @pytest.mark.parametrize(
        "configs",
        [
            pytest.param("[(1024, 4)]", marks=pytest.mark.slow),
            "[(1024, 4), (256, 2), (512, 8)]",
        ],
    )
    @pytest.mark.slow
    def test_a_tuned_kernel_passes(self, judge, configs):
        assert judge(DOUBLE, f"CONFIGS = {configs}\n{AUTOTUNED}").status == "passed"

    def test_a_configuration_that_does_not_compile_is_an_error(self, judge):
        verdict = judge(DOUBLE, f"CONFIGS = [(1000, 4)]\n{AUTOTUNED}")
        assert verdict.status == "compile_error"
