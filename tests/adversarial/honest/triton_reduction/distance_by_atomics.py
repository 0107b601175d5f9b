"""All blocks add to one number by atomics.

problem: distance
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def distance_kernel(x_ptr, y_ptr, out_ptr, total, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    difference = x - tl.load(y_ptr + at, mask=mask, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(difference * difference, axis=0) * scale)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y, total = x.contiguous(), y.contiguous(), x.numel()
        out = torch.zeros((), dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(total, 8192),)
        distance_kernel[grid](x, y, out, total, 1.0 / total, BLOCK=8192, num_warps=8)
        return out
