"""Gathers rows of the table and adds them up in registers.

problem: embedding
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def lookup_kernel(index_ptr, table_ptr, out_ptr, length, width, WIDTH: tl.constexpr):
    sequence = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), dtype=tl.float32)
    for i in range(length):
        row = tl.load(index_ptr + sequence * length + i)
        total += tl.load(table_ptr + row * width + column, mask=column < width, other=0.0)
    tl.store(out_ptr + sequence * width + column, total, mask=column < width)


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, index):
        index = index.contiguous()
        table, (count, length) = self.table.weight, index.shape
        width = table.shape[1]
        out = torch.empty(count, width, dtype=table.dtype, device=table.device)
        block = triton.next_power_of_2(width)
        lookup_kernel[(count,)](index, table, out, length, width, WIDTH=block)
        return out
