"""Adds up the weights by ATen and takes dot products in a kernel.

problem: linear_sum
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def dot_kernel(x_ptr, w_ptr, b_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    w = tl.load(w_ptr + at, mask=at < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x * w, axis=0) + tl.load(b_ptr))


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden)

    def forward(self, x):
        x = x.contiguous()
        weight, bias = self.linear.weight.sum(dim=0), self.linear.bias.sum()
        out = torch.empty(x.shape[0], 1, dtype=x.dtype, device=x.device)
        block = triton.next_power_of_2(x.shape[1])
        dot_kernel[(x.shape[0],)](x, weight, bias, out, x.shape[1], BLOCK=block)
        return out
