"""A barrier over the grid, which holds only while all blocks run at once.

problem: softmax
devices: cuda
expect: labelled
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_in_two(x_ptr, out_ptr, part_ptr, seen_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(part_ptr + row, tl.sum(e, axis=0))
    tl.atomic_add(seen_ptr, 1)
    while tl.atomic_add(seen_ptr, 0) < tl.num_programs(0):
        pass
    tl.store(out_ptr + row * cols + at, e / tl.load(part_ptr + row), mask=at < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out, part = torch.empty_like(x), torch.empty(rows, device=x.device)
        seen = torch.zeros(1, dtype=torch.int32, device=x.device)
        block = triton.next_power_of_2(cols)
        softmax_in_two[(rows,)](x, out, part, seen, cols, BLOCK=block)
        return out
