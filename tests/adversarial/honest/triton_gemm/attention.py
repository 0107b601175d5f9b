"""Causal flash attention in strict float32.

problem: attention
devices: cuda
"""

import math

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, tokens, scale,
    BM: tl.constexpr, BN: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1) * tokens * HEAD
    first = tl.program_id(0) * BM
    row = first + tl.arange(0, BM)
    at = tl.arange(0, HEAD)
    here = head + row[:, None] * HEAD + at[None, :]
    q = tl.load(q_ptr + here, mask=row[:, None] < tokens, other=0.0) * scale
    peak = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, HEAD), dtype=tl.float32)
    for start in range(0, tl.minimum(first + BM, tokens), BN):
        column = start + tl.arange(0, BN)
        there = head + column[:, None] * HEAD + at[None, :]
        k = tl.load(k_ptr + there, mask=column[:, None] < tokens, other=0.0)
        v = tl.load(v_ptr + there, mask=column[:, None] < tokens, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        seen = (column[None, :] <= row[:, None]) & (column[None, :] < tokens)
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(peak, tl.max(scores, axis=1))
        power = tl.exp(scores - new[:, None])
        fade = tl.exp(peak - new)
        total = total * fade + tl.sum(power, axis=1)
        acc = tl.dot(power, v, acc * fade[:, None], input_precision="ieee")
        peak = new
    tl.store(out_ptr + here, acc / total[:, None], mask=row[:, None] < tokens)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        batch, heads, tokens, size = q.shape
        out = torch.empty_like(q)
        grid = (triton.cdiv(tokens, 32), batch * heads)
        scale = 1.0 / math.sqrt(size)
        attention_kernel[grid](q, k, v, out, tokens, scale, BM=32, BN=32, HEAD=size)
        return out
