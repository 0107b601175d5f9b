"""One kernel forward, one backward that also adds up the weight's gradient by program.

The backward pass reads each row once, for the inputs' gradient and for the weight's, and takes the
row's scale from it again. Its programs fill the GPU once, and load rows ahead of their work.
"""

import torch
import triton
import triton.language as tl
from torch import nn

MULTIPROCESSORS = 132  # of an H200; other numbers give the same results
PER_SM, STAGES, WARPS = 2, 3, 4
"""Of the backward pass: programs a multiprocessor, rows that each has in flight, its warps."""
ROWS, COLUMNS = 64, 32
"""The tile in which the programs' sums are added up."""


@triton.jit
def norm_forward(
    x_ptr, residual_ptr, weight_ptr, y_ptr, total_ptr, eps, N: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < N
    at = row * N + column
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + at, mask=inside, other=0.0).to(tl.float32)
    rounded = (x + residual).to(total_ptr.dtype.element_ty)
    tl.store(total_ptr + at, rounded, mask=inside)
    total = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / N + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (total * scale * weight).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def norm_backward(
    dy_ptr,
    dtotal_ptr,
    total_ptr,
    weight_ptr,
    dx_ptr,
    partial_ptr,
    M,
    eps,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < N
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], tl.float32)
    for row in tl.range(program, M, tl.num_programs(0), num_stages=STAGES):
        at = tl.cast(row, tl.int64) * N + column
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
        total = tl.load(total_ptr + at, mask=inside, other=0.0).to(tl.float32)
        dtotal = tl.load(dtotal_ptr + at, mask=inside, other=0.0).to(tl.float32)
        inner = dy * weight
        square = tl.sum(total * total, axis=0) / N
        product = tl.sum(inner * total, axis=0) / N
        scale = tl.rsqrt(square + eps)
        normed = total * scale
        dx = dtotal + (inner - normed * (product * scale)) * scale
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dweight += dy * normed
    tl.store(partial_ptr + program.to(tl.int64) * N + column, dweight, mask=inside)


@triton.jit
def add_rows(partial_ptr, sum_ptr, P, N: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, P, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < P)[:, None] & (column < N)[None, :]
        total += tl.load(
            partial_ptr + row[:, None].to(tl.int64) * N + column[None, :], mask=inside, other=0.0
        )
    tl.store(sum_ptr + column, tl.sum(total, axis=0).to(sum_ptr.dtype.element_ty), mask=column < N)


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, eps, N, block):
        x, residual = x.contiguous(), residual.contiguous()
        y, total = torch.empty_like(x), torch.empty_like(x)
        norm_forward[(x.numel() // N,)](x, residual, weight, y, total, eps, N, block, num_warps=8)
        ctx.save_for_backward(total, weight)
        ctx.settings = eps, N, block
        return y, total

    @staticmethod
    def backward(ctx, dy, dtotal):
        total, weight = ctx.saved_tensors
        eps, N, block = ctx.settings
        dy, dtotal = dy.contiguous(), dtotal.contiguous()
        M = total.numel() // N
        P = min(MULTIPROCESSORS * PER_SM, M)
        dx, dweight = torch.empty_like(total), torch.empty_like(weight)
        partial = torch.empty((P, N), dtype=torch.float32, device=dx.device)
        norm_backward[(P,)](
            dy, dtotal, total, weight, dx, partial, M, eps, N, block, STAGES, num_warps=WARPS
        )
        add_rows[(triton.cdiv(N, COLUMNS),)](partial, dweight, P, N, ROWS, COLUMNS)
        return dx, dx, dweight, None, None, None


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter((1 + 0.1 * torch.randn(hidden)).bfloat16())
        self.eps = eps
        self.hidden, self.block = hidden, triton.next_power_of_2(hidden)

    def forward(self, x, residual):
        return Norm.apply(x, residual, self.weight, self.eps, self.hidden, self.block)
