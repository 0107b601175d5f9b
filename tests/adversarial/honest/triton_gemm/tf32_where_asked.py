"""Uses TF32 where the user allows it.

problem: linear
devices: cuda
precision: tf32
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
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row[:, None] * k + inner[None, :])
        w = tl.load(w_ptr + column[None, :] * k + inner[:, None])
        acc = tl.dot(x, w, acc, input_precision="tf32")
    acc += tl.load(b_ptr + column)[None, :]
    tl.store(out_ptr + row[:, None] * n + column[None, :], tl.maximum(acc, 0.0))


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        x, w, b = x.contiguous(), self.linear.weight, self.linear.bias
        (m, k), n = x.shape, w.shape[0]
        out = torch.empty(m, n, dtype=x.dtype, device=x.device)
        linear_kernel[(m // 64, n // 64)](x, w, b, out, n, k, BM=64, BN=64, BK=32)
        return out
