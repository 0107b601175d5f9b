"""Offsets of 64 bits, and a grid of two dimensions.

problem: bias_swish
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def swish_kernel(x_ptr, b_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    here = row * columns + column
    y = tl.load(x_ptr + here, mask=mask) + tl.load(b_ptr + column, mask=mask)
    tl.store(out_ptr + here, y / (1.0 + tl.exp(-y)), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, columns = x.shape
        swish_kernel[(triton.cdiv(columns, 256), rows)](x, self.bias, out, columns, BLOCK=256)
        return out
