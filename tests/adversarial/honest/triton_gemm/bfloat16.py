"""A bfloat16 product for a bfloat16 problem.

problem: half_linear
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row * k + inner[None, :])
        w = tl.load(w_ptr + column * k + inner[:, None])
        acc = tl.dot(x, w, acc)
    acc = tl.maximum(acc + tl.load(b_ptr + column).to(tl.float32), 0.0)
    tl.store(out_ptr + row * n + column, acc.to(out_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features, dtype=torch.bfloat16)

    def forward(self, x):
        x, w, b = x.contiguous(), self.linear.weight, self.linear.bias
        (m, k), n = x.shape, w.shape[0]
        out = torch.empty(m, n, dtype=x.dtype, device=x.device)
        linear_kernel[(m // 32, n // 32)](x, w, b, out, n, k, BM=32, BN=32, BK=64)
        return out
