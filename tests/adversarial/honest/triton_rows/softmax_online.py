"""Two passes over blocks of a row, with powers of two and a running maximum.

problem: softmax
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    LOG2_E: tl.constexpr = 1.4426950408889634
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * columns
    out_ptr += row * columns
    peak = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=-float("inf"))
        new = tl.maximum(peak, tl.max(x, axis=0))
        scale = tl.exp2((peak - new) * LOG2_E)
        total = total * scale + tl.sum(tl.exp2((x - new) * LOG2_E), axis=0)
        peak = new
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=-float("inf"))
        tl.store(out_ptr + at, tl.exp2((x - peak) * LOG2_E) / total, mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
