"""Writes its result over a copy of the input that is its own.

problem: bias_swish
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def swish_kernel(x_ptr, b_ptr, total, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    y = tl.load(x_ptr + at, mask=mask) + tl.load(b_ptr + at % columns, mask=mask)
    tl.store(x_ptr + at, y * tl.sigmoid(y), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x.clone(memory_format=torch.contiguous_format)
        grid = (triton.cdiv(x.numel(), 1024),)
        swish_kernel[grid](x, self.bias, x.numel(), x.shape[-1], BLOCK=1024)
        return x
