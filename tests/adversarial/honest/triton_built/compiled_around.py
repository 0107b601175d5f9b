"""A Triton kernel that `torch.compile` sees and calls.

problem: bias_swish
devices: cuda
timeout_s: 120
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def gate_kernel(y_ptr, out_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + at, mask=at < total)
    tl.store(out_ptr + at, tl.sigmoid(y), mask=at < total)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))
        self.run = torch.compile(self.compute)

    def compute(self, x):
        y = (x + self.bias).contiguous()
        gate = torch.empty_like(y)
        gate_kernel[(triton.cdiv(y.numel(), 1024),)](y, gate, y.numel(), BLOCK=1024)
        return y * gate

    def forward(self, x):
        return self.run(x)
