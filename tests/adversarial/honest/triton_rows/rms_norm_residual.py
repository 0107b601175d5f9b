"""One kernel writes both results.

problem: rms_norm_residual
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def norm_kernel(x_ptr, r_ptr, w_ptr, normed_ptr, total_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    here = row * columns + at
    total = tl.load(x_ptr + here, mask=mask, other=0.0)
    total += tl.load(r_ptr + here, mask=mask, other=0.0)
    tl.store(total_ptr + here, total, mask=mask)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / columns + 1e-6)
    tl.store(normed_ptr + here, total * scale * tl.load(w_ptr + at, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        normed, total = torch.empty_like(x), torch.empty_like(x)
        columns = x.shape[-1]
        block = triton.next_power_of_2(columns)
        norm_kernel[(x.numel() // columns,)](
            x, residual, self.weight, normed, total, columns, BLOCK=block
        )
        return {"normed": normed, "residual": total}
