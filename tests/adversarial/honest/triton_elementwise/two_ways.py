"""Has a kernel for half precision too, which this problem never launches.

problem: bias_swish
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def single_kernel(x_ptr, b_ptr, out_ptr, total, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    y = tl.load(x_ptr + at, mask=mask) + tl.load(b_ptr + at % columns, mask=mask)
    tl.store(out_ptr + at, y * tl.sigmoid(y), mask=mask)


@triton.jit
def half_kernel(x_ptr, b_ptr, out_ptr, total, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    y = x + tl.load(b_ptr + at % columns, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, (y * tl.sigmoid(y)).to(out_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        kernel = single_kernel if x.dtype == torch.float32 else half_kernel
        grid = (triton.cdiv(x.numel(), 1024),)
        kernel[grid](x, self.bias, out, x.numel(), x.shape[-1], BLOCK=1024)
        return out
