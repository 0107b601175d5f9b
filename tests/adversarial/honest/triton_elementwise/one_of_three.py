"""A kernel for the first output; the others are the input, as in the reference.

problem: passthrough
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softplus_kernel(x_ptr, out_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total)
    y = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    tl.store(out_ptr + at, y, mask=at < total)


class ModelNew(nn.Module):
    def forward(self, x):
        source = x.contiguous()
        out = torch.empty_like(source)
        softplus_kernel[(triton.cdiv(x.numel(), 1024),)](source, out, x.numel(), BLOCK=1024)
        return out, x, x[:, :16]
