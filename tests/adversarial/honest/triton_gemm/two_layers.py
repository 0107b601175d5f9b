"""Two launches of one kernel, with GELU behind the first: a `constexpr` says which.

problem: mlp
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, m, n, k, GELU: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        x_mask = (row < m) & (inner[None, :] < k)
        w_mask = (column < n) & (inner[:, None] < k)
        x = tl.load(x_ptr + row * k + inner[None, :], mask=x_mask, other=0.0)
        w = tl.load(w_ptr + column * k + inner[:, None], mask=w_mask, other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + column, mask=column < n, other=0.0)
    if GELU:
        acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(out_ptr + row * n + column, acc, mask=(row < m) & (column < n))


def linear(x, layer, gelu):
    (m, k), n = x.shape, layer.weight.shape[0]
    out = torch.empty(m, n, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 32))
    linear_kernel[grid](x, layer.weight, layer.bias, out, m, n, k, GELU=gelu, BM=16, BN=32, BK=32)
    return out


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, x):
        return linear(linear(x.contiguous(), self.up, True), self.down, False)
