"""Partial sums of one kernel, added up by a second.

problem: distance
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def partial_kernel(x_ptr, y_ptr, partial_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    difference = tl.load(x_ptr + at, mask=mask, other=0.0)
    difference -= tl.load(y_ptr + at, mask=mask, other=0.0)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(difference * difference, axis=0))


@triton.jit
def final_kernel(partial_ptr, out_ptr, count, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    partial = tl.load(partial_ptr + at, mask=at < count, other=0.0)
    tl.store(out_ptr, tl.sum(partial, axis=0) * scale)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y, total = x.contiguous(), y.contiguous(), x.numel()
        count = triton.cdiv(total, 4096)
        partial = torch.empty(count, dtype=x.dtype, device=x.device)
        out = torch.empty((), dtype=x.dtype, device=x.device)
        partial_kernel[(count,)](x, y, partial, total, BLOCK=4096)
        block = triton.next_power_of_2(count)
        final_kernel[(1,)](partial, out, count, 1.0 / total, BLOCK=block)
        return out
