"""Several rows for each program, as one block of two dimensions.

problem: layernorm
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, rows, eps, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    mask = row < rows
    x = tl.load(x_ptr + row * COLUMNS + column, mask=mask, other=0.0)
    mean = tl.sum(x, axis=1, keep_dims=True) / COLUMNS
    x -= mean
    scale = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / COLUMNS + eps)
    y = x * scale * tl.load(w_ptr + column) + tl.load(b_ptr + column)
    tl.store(out_ptr + row * COLUMNS + column, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, columns = x.shape
        grid = (triton.cdiv(rows, 4),)
        w, b, eps = self.norm.weight, self.norm.bias, self.norm.eps
        norm_kernel[grid](x, w, b, out, rows, eps, COLUMNS=columns, ROWS=4, num_warps=8)
        return out
