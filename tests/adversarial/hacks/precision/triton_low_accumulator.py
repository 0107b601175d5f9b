"""A Triton product that rounds its accumulator to float16 in every step.

problem: matmul
devices: cuda
precision: fp32
expect: refused
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def product(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + cols[None, :])
        total = (total + tl.dot(left, right, input_precision="ieee")).to(tl.float16).to(tl.float32)
    tl.store(out + rows[:, None] * N + cols[None, :], total)


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        out = torch.empty(m, n, device=a.device)
        product[(m // 64, n // 64)](a, b, out, m, n, k, BM=64, BN=64, BK=32)
        return out
