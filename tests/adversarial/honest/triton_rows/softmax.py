"""One program for each row, with a mask.

problem: softmax
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=mask, other=-float("inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, power / tl.sum(power, axis=0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=8)
        return out
