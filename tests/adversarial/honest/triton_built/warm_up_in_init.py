"""Compiles its kernel in the constructor, on zeros of another size.

problem: bias_swish
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def swish_kernel(x_ptr, b_ptr, out_ptr, total, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    y = tl.load(x_ptr + at, mask=mask) + tl.load(b_ptr + at % columns, mask=mask)
    tl.store(out_ptr + at, y * tl.sigmoid(y), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))
        with torch.no_grad():
            self(torch.zeros(3, features, device=self.bias.device))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        swish_kernel[grid](x, self.bias, out, x.numel(), x.shape[-1], BLOCK=1024)
        return out
