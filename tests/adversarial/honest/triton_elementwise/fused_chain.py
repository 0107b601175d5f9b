"""The whole chain in one kernel, with a hyperbolic tangent made of exponentials.

problem: elementwise
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def tanh(x):
    power = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - power) / (1.0 + power)
    return tl.where(x < 0.0, -size, size)


@triton.jit
def chain_kernel(x_ptr, y_ptr, out_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    x = tl.load(x_ptr + at, mask=mask)
    y = tl.load(y_ptr + at, mask=mask)
    gelu = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + at, tanh(gelu * tl.sigmoid(y) + x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out
