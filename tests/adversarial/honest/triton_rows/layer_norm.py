"""Mean first, then the squared deviations, of a row held in registers.

problem: layernorm
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(w_ptr + at, mask=mask)
    b = tl.load(b_ptr + at, mask=mask)
    tl.store(out_ptr + row * columns + at, centred * scale * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        w, b, columns = self.norm.weight, self.norm.bias, x.shape[-1]
        block = triton.next_power_of_2(columns)
        norm_kernel[(x.numel() // columns,)](x, w, b, out, columns, self.norm.eps, BLOCK=block)
        return out
