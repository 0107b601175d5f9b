"""Adds rows to their segments by atomics.

problem: segment_sum
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scatter_kernel(x_ptr, index_ptr, out_ptr, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    mask = (row[:, None] < rows) & (column[None, :] < width)
    segment = tl.load(index_ptr + row, mask=row < rows, other=0)
    x = tl.load(x_ptr + row[:, None] * width + column[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + segment[:, None] * width + column[None, :], x, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments

    def forward(self, x, index):
        x, index = x.contiguous(), index.contiguous()
        rows, width = x.shape
        out = torch.zeros(self.segments, width, dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(rows, 32),)
        block = triton.next_power_of_2(width)
        scatter_kernel[grid](x, index, out, rows, width, ROWS=32, WIDTH=block)
        return out
