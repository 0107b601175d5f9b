"""A product of 8-bit integers on the tensor cores, added up in 32 bits.

problem: int8_linear
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, out_ptr, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row * k + inner[None, :])
        w = tl.load(w_ptr + column * k + inner[:, None])
        acc += tl.dot(x, w, out_dtype=tl.int32)
    tl.store(out_ptr + row * n + column, acc)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        weight = torch.randint(-128, 128, (features, features), dtype=torch.int8)
        self.register_buffer("weight", weight)

    def forward(self, x):
        x = x.contiguous()
        (m, k), n = x.shape, self.weight.shape[0]
        out = torch.empty(m, n, dtype=torch.int32, device=x.device)
        linear_kernel[(m // 32, n // 32)](x, self.weight, out, n, k, BM=32, BN=32, BK=64)
        return out
