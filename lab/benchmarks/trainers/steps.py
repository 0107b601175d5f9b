"""The problem and the twenty kernels that every client sends, with the verdict that each must get.

This module imports nothing: clients run in environments of their own.
"""

REFERENCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x).cumsum(0) * torch.sigmoid(x).amax(1, keepdim=True)


def get_inputs():
    return [torch.randn(64, 256)]
"""
KERNEL = """import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {body}
"""
_RIGHT = "torch.tanh(x).cumsum(0) * torch.sigmoid(x.amax(1, keepdim=True))"
_BODIES = {
    "passed": _RIGHT,
    "wrong_output": f"{_RIGHT} + 1",
    "runtime_error": "x.no_such_method()",
    "compile_error": "(",
}
TRITON_REFERENCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 0.5 + 1


def get_inputs():
    return [torch.randn(64, 256)]
"""
TRITON_KERNEL = """import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, {body}, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""
_TRITON_RIGHT = "tl.maximum(x, 0.0) * 0.5 + 1.0"
_TRITON_BODIES = {
    "passed": _TRITON_RIGHT,
    "wrong_output": f"{_TRITON_RIGHT} + 1.0",
    "runtime_error": "no_such_name",
    "compile_error": "(",
}
_STATUSES = ("passed", "wrong_output", "passed", "runtime_error", "passed", "compile_error")


def steps(count: int = 20, *, triton: bool = False) -> list[tuple[str, str]]:
    """Return kernels and their statuses; half of them are right, and no two are equal.

    They are of `TRITON_REFERENCE` with `triton`, whose compiler finds the unknown name, else of
    `REFERENCE`.
    """
    kernel, bodies = (TRITON_KERNEL, _TRITON_BODIES) if triton else (KERNEL, _BODIES)
    chosen = [_STATUSES[i % len(_STATUSES)] for i in range(count)]
    return [
        (kernel.format(body=bodies[status]) + f"# step {number}\n", status)
        for number, status in enumerate(chosen)
    ]
