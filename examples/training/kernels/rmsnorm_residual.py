"""One kernel forward, one backward that also adds up the weight's gradient by program.

The backward pass reads each row once, for the inputs' gradient and for the weight's. Its programs
fill the GPU once, and load a row while they work on the one before.
"""

import torch
import triton
import triton.language as tl
from torch import nn

MULTIPROCESSORS = 132  # of an H200; other numbers give the same results
CONFIGURATIONS = [
    triton.Config({"PER_SM": per_sm, "STAGES": stages}, num_warps=warps)
    for per_sm, warps in ((1, 16), (2, 8), (3, 8), (4, 4))
    for stages in (1, 2, 3)
]


@triton.jit
def norm_forward(
    x_ptr, residual_ptr, weight_ptr, y_ptr, total_ptr, scale_ptr, N, eps, BLOCK: tl.constexpr
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
    tl.store(scale_ptr + row, scale)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (total * scale * weight).to(y_ptr.dtype.element_ty), mask=inside)


@triton.autotune(CONFIGURATIONS, key=["M", "N"])
@triton.jit
def norm_backward(
    dy_ptr,
    dtotal_ptr,
    total_ptr,
    weight_ptr,
    scale_ptr,
    dx_ptr,
    partial_ptr,
    M,
    N,
    BLOCK: tl.constexpr,
    PER_SM: tl.constexpr,  # noqa: ARG001 - the grid has so many programs for each multiprocessor
    STAGES: tl.constexpr,
):
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < N
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], tl.float32)
    for row in tl.range(program, M, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * N + column
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
        total = tl.load(total_ptr + at, mask=inside, other=0.0).to(tl.float32)
        dtotal = tl.load(dtotal_ptr + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(scale_ptr + row)
        normed = total * scale
        inner = dy * weight
        mean = tl.sum(inner * normed, axis=0) / N
        dx = dtotal + (inner - normed * mean) * scale
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dweight += dy * normed
    tl.store(partial_ptr + program.to(tl.int64) * N + column, dweight, mask=inside)


@triton.jit
def add_rows(partial_ptr, sum_ptr, P, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, P, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < P)[:, None] & (column < N)[None, :]
        at = row[:, None].to(tl.int64) * N + column[None, :]
        total += tl.load(partial_ptr + at, mask=inside, other=0.0)
    added = tl.sum(total, axis=0)
    tl.store(sum_ptr + column, added.to(sum_ptr.dtype.element_ty), mask=column < N)


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, eps):
        x, residual = x.contiguous(), residual.contiguous()
        N = x.shape[-1]
        M = x.numel() // N
        y, total = torch.empty_like(x), torch.empty_like(x)
        scale = torch.empty(M, dtype=torch.float32, device=x.device)
        BLOCK = triton.next_power_of_2(N)
        norm_forward[(M,)](x, residual, weight, y, total, scale, N, eps, BLOCK=BLOCK, num_warps=8)
        ctx.save_for_backward(total, weight, scale)
        return y, total

    @staticmethod
    def backward(ctx, dy, dtotal):
        total, weight, scale = ctx.saved_tensors
        dy, dtotal = dy.contiguous(), dtotal.contiguous()
        N = total.shape[-1]
        M = total.numel() // N
        dx, dweight = torch.empty_like(total), torch.empty_like(weight)
        most = MULTIPROCESSORS * max(config.kwargs["PER_SM"] for config in CONFIGURATIONS)
        partial = torch.empty(min(most, M), N, dtype=torch.float32, device=dx.device)

        def programs(chosen):
            return (min(MULTIPROCESSORS * chosen["PER_SM"], M),)

        norm_backward[programs](
            dy,
            dtotal,
            total,
            weight,
            scale,
            dx,
            partial,
            M,
            N,
            BLOCK=triton.next_power_of_2(N),
        )
        rows = programs(norm_backward.best_config.kwargs)[0]
        add_rows[(triton.cdiv(N, 32),)](partial, dweight, rows, N, ROWS=64, COLUMNS=32)
        return dx, dx, dweight, None


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter((1 + 0.1 * torch.randn(hidden)).bfloat16())
        self.eps = eps

    def forward(self, x, residual):
        return Norm.apply(x, residual, self.weight, self.eps)
