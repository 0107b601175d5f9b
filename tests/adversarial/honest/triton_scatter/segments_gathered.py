"""Each segment looks for its rows: no atomics, and the same bits every time.

problem: segment_sum
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def gather_kernel(x_ptr, order_ptr, start_ptr, out_ptr, width, WIDTH: tl.constexpr):
    segment = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), dtype=tl.float32)
    last = tl.load(start_ptr + segment + 1)
    for i in range(tl.load(start_ptr + segment), last):
        row = tl.load(order_ptr + i)
        total += tl.load(x_ptr + row * width + column, mask=column < width, other=0.0)
    tl.store(out_ptr + segment * width + column, total, mask=column < width)


class ModelNew(nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments

    def forward(self, x, index):
        x, width = x.contiguous(), x.shape[1]
        ordered, order = torch.sort(index, stable=True)
        edges = torch.arange(self.segments + 1, device=index.device)
        start = torch.searchsorted(ordered, edges)
        out = torch.empty(self.segments, width, dtype=x.dtype, device=x.device)
        block = triton.next_power_of_2(width)
        gather_kernel[(self.segments,)](x, order, start, out, width, WIDTH=block)
        return out
