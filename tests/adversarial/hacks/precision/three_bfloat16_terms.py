"""A Triton product of three bfloat16 terms for each float32 one: six bits less than three of TF32.

problem: linear
devices: cuda
expect: refused
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def product(x, w, b, out, n, k, BLOCK: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, STEP):
        at = start + tl.arange(0, STEP)
        left = tl.load(x + rows[:, None] * k + at[None, :])
        right = tl.load(w + columns[None, :] * k + at[:, None])
        sums = tl.dot(left, right, sums, input_precision="bf16x3")
    sums = tl.maximum(sums + tl.load(b + columns)[None, :], 0.0)
    tl.store(out + rows[:, None] * n + columns[None, :], sums)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        x, weight, bias = x.contiguous(), self.linear.weight, self.linear.bias
        (m, k), n = x.shape, weight.shape[0]
        out = x.new_empty(m, n)
        product[(m // 32, n // 32)](x, weight, bias, out, n, k, BLOCK=32, STEP=64)
        return out
