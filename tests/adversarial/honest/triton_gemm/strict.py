"""A product in strict float32 with bias and ReLU fused behind it; the grid is a lambda.

problem: linear
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    x_ptrs = x_ptr + row[:, None] * k + inner[None, :]
    w_ptrs = w_ptr + column[None, :] * k + inner[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        x = tl.load(x_ptrs, mask=(row[:, None] < m) & (start + inner[None, :] < k), other=0.0)
        w = tl.load(w_ptrs, mask=(column[None, :] < n) & (start + inner[:, None] < k), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
        x_ptrs += BK
        w_ptrs += BK
    acc += tl.load(b_ptr + column, mask=column < n, other=0.0)[None, :]
    out = out_ptr + row[:, None] * n + column[None, :]
    tl.store(out, tl.maximum(acc, 0.0), mask=(row[:, None] < m) & (column[None, :] < n))


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        x, w = x.contiguous(), self.linear.weight
        (m, k), n = x.shape, w.shape[0]
        out = torch.empty(m, n, dtype=x.dtype, device=x.device)
        grid = lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"]))  # noqa: E731
        linear_kernel[grid](x, w, self.linear.bias, out, m, n, k, BM=32, BN=64, BK=32)
        return out
