"""One kernel for the loss of each row and a second for their mean.

problem: cross_entropy
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
    peak = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - peak), axis=0)
    picked = tl.load(x_ptr + row * columns + tl.load(target_ptr + row))
    tl.store(loss_ptr + row, tl.log(total) + (peak - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    loss = tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(loss, axis=0) / rows)


class ModelNew(nn.Module):
    def forward(self, logits, target):
        logits = logits.contiguous()
        rows, columns = logits.shape
        loss = torch.empty(rows, dtype=logits.dtype, device=logits.device)
        out = torch.empty((), dtype=logits.dtype, device=logits.device)
        block = triton.next_power_of_2(columns)
        loss_kernel[(rows,)](logits, target, loss, columns, BLOCK=block)
        mean_kernel[(1,)](loss, out, rows, BLOCK=triton.next_power_of_2(rows))
        return out
