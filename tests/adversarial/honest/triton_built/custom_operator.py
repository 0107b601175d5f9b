"""Registers its kernel as an operator with a meta function.

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


@torch.library.custom_op("honest::bias_swish", mutates_args=())
def bias_swish(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    swish_kernel[grid](x, bias, out, x.numel(), x.shape[-1], BLOCK=1024)
    return out


@bias_swish.register_fake
def _(x, bias):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return bias_swish(x, self.bias)
