"""Counts in each block first, and adds the counts by 64-bit atomics.

problem: histogram
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def count_kernel(x_ptr, out_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x_ptr + at).to(tl.int32), BINS)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        assert x.numel() % 1024 == 0
        out = torch.zeros(256, dtype=torch.int64, device=x.device)
        count_kernel[(x.numel() // 1024,)](x, out, BINS=256, BLOCK=1024)
        return out
