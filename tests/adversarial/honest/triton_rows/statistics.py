"""Three outputs of one kernel, one of them the index of the maximum, as a 64-bit integer.

problem: statistics
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def statistics_kernel(x_ptr, out_ptr, top_ptr, where_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    tl.store(out_ptr + row * columns + at, centred * scale, mask=mask)
    top, where = tl.max(tl.where(mask, x, -float("inf")), axis=0, return_indices=True)
    tl.store(top_ptr + row, top)
    tl.store(where_ptr + row, where.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        out = torch.empty_like(x)
        top = torch.empty(rows, dtype=x.dtype, device=x.device)
        where = torch.empty(rows, dtype=torch.int64, device=x.device)
        block = triton.next_power_of_2(columns)
        statistics_kernel[(rows,)](x, out, top, where, columns, BLOCK=block)
        return {"normalized": out, "top": top, "where": where}
