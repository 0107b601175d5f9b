"""Turns tiles around in registers.

problem: transpose_scale
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def transpose_kernel(x_ptr, w_ptr, out_ptr, rows, columns, TILE: tl.constexpr):
    base = tl.program_id(2).to(tl.int64) * rows * columns
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    here = row[:, None] * columns + column[None, :]
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.trans(tl.load(x_ptr + base + here, mask=mask, other=0.0))
    tile = tile * tl.load(w_ptr + row, mask=row < rows, other=0.0)[None, :]
    there = column[:, None] * rows + row[None, :]
    turned = (column[:, None] < columns) & (row[None, :] < rows)
    tl.store(out_ptr + base + there, tile, mask=turned)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x.contiguous()
        batch, rows, columns = x.shape
        out = torch.empty(batch, columns, rows, dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(rows, 32), triton.cdiv(columns, 32), batch)
        transpose_kernel[grid](x, self.weight, out, rows, columns, TILE=32)
        return out
