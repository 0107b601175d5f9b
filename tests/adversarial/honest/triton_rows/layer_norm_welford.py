"""Merges means and squared deviations with a combine function of its own.

problem: layernorm
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def merge(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = tl.where(count > 0.0, count_b / tl.maximum(count, 1.0), 0.0)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=mask, other=0.0)
    one = tl.where(mask, 1.0, 0.0)
    mean, m2, _ = tl.reduce((x, tl.zeros_like(x), one), 0, merge)
    scale = tl.rsqrt(m2 / columns + eps)
    w = tl.load(w_ptr + at, mask=mask)
    b = tl.load(b_ptr + at, mask=mask)
    tl.store(out_ptr + row * columns + at, (x - mean) * scale * w + b, mask=mask)


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
        norm_kernel[(x.shape[0],)](x, w, b, out, columns, self.norm.eps, BLOCK=block)
        return out
