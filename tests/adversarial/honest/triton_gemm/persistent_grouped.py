"""A few programs walk over all tiles, grouped so that neighbours share what the cache holds.

problem: matmul
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), down * across, tl.num_programs(0)):
        group = tile // (GROUP * across)
        height = tl.minimum(down - group * GROUP, GROUP)
        within = tile % (GROUP * across)
        row = (group * GROUP + within % height) * BM + tl.arange(0, BM)
        column = (within // height) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, k, BK):
            inner = start + tl.arange(0, BK)
            a_mask = (row[:, None] < m) & (inner[None, :] < k)
            b_mask = (inner[:, None] < k) & (column[None, :] < n)
            a = tl.load(a_ptr + row[:, None] * k + inner[None, :], mask=a_mask, other=0.0)
            b = tl.load(b_ptr + inner[:, None] * n + column[None, :], mask=b_mask, other=0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
        out = out_ptr + row[:, None] * n + column[None, :]
        tl.store(out, acc, mask=(row[:, None] < m) & (column[None, :] < n))


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(m, n, dtype=a.dtype, device=a.device)
        matmul_kernel[(16,)](a, b, out, m, n, k, BM=32, BN=64, BK=32, GROUP=4)
        return out
