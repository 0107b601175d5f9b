"""Computes the means in a kernel, and returns them expanded with a stride of zero.

problem: mean_broadcast
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def mean_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / columns)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], 1, dtype=x.dtype, device=x.device)
        mean_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
        return out.expand_as(x)
