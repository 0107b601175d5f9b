"""Parts of the inner dimension are added up by atomics, in any order: the low bits vary.

problem: matmul
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, share,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * share
    last = tl.minimum(first + share, k)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, last, BK):
        inner = start + tl.arange(0, BK)
        a_mask = (row[:, None] < m) & (inner[None, :] < last)
        b_mask = (inner[:, None] < last) & (column[None, :] < n)
        a = tl.load(a_ptr + row[:, None] * k + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + column[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    out = out_ptr + row[:, None] * n + column[None, :]
    tl.atomic_add(out, acc, mask=(row[:, None] < m) & (column[None, :] < n))


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.zeros(m, n, dtype=a.dtype, device=a.device)
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), 4)
        matmul_kernel[grid](a, b, out, m, n, k, triton.cdiv(k, 4), BM=64, BN=64, BK=32)
        return out
