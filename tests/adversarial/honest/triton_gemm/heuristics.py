"""A heuristic tells the kernel whether it needs masks; strides are arguments.

problem: matmul
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.heuristics({"EVEN": lambda args: args["k"] % args["BK"] == 0})
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_col, b_row, b_col, out_row, out_col,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * BM + tl.arange(0, BM)) % m
    column = (tl.program_id(1) * BN + tl.arange(0, BN)) % n
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + row[:, None] * a_row + inner[None, :] * a_col
    b_ptrs = b_ptr + inner[:, None] * b_row + column[None, :] * b_col
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for left in range(k, 0, -BK):
        if EVEN:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=inner[None, :] < left, other=0.0)
            b = tl.load(b_ptrs, mask=inner[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BK * a_col
        b_ptrs += BK * b_row
    tl.store(out_ptr + row[:, None] * out_row + column[None, :] * out_col, acc)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(n, m, dtype=a.dtype, device=a.device).t()
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 64))
        matmul_kernel[grid](
            a, b, out, m, n, k, *a.stride(), *b.stride(), *out.stride(), BM=32, BN=64, BK=32
        )
        return out
