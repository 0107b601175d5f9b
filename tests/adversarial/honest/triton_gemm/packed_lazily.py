"""A kernel that wants the weight transposed, which it is when it has changed.

problem: linear
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
    acc = tl.zeros((BM, BN), dtype=tl.float32) + tl.load(b_ptr + column)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row * k + inner[None, :])
        w = tl.load(w_ptr + inner[:, None] * n + column)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(out_ptr + row * n + column, tl.maximum(acc, 0.0))


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.packed, self.version = None, None

    def forward(self, x):
        x, weight = x.contiguous(), self.linear.weight
        if self.version != (weight.data_ptr(), weight._version):
            self.packed = weight.detach().t().contiguous()
            self.version = (weight.data_ptr(), weight._version)
        (m, k), n = x.shape, weight.shape[0]
        out = torch.empty(m, n, dtype=x.dtype, device=x.device)
        grid = (m // 32, n // 64)
        linear_kernel[grid](
            x, self.packed, self.linear.bias, out, n, k, BM=32, BN=64, BK=32, num_stages=3
        )
        return out
