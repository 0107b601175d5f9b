"""Kernels for definitions of FlashInfer-Bench: Triton for two op types, and references.

They are right, and not tuned: they show that a kernel makes its way to the benchmark and back.
"""

from __future__ import annotations

import re

from adaexplore.problems import Definition

_RMS_NORM = """\
import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, residual, weight, out, n, eps, block: tl.constexpr, fused: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, block)
    inside = columns < n
    value = tl.load(x + row + columns, mask=inside, other=0.0).to(tl.float32)
    if fused:
        value += tl.load(residual + row + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value) / n + eps)
    gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row + columns, (value * scale * gain).to(out.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, {arguments}):
        rows, n = hidden_states.shape
        out = torch.empty_like(hidden_states)
        block = triton.next_power_of_2(n)
        rms_norm[(rows,)](
            hidden_states, {residual}, weight, out, n, {eps}, block, {fused}, num_warps=4
        )
        return out
"""
_GEMM = """\
import torch
import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * bm + tl.arange(0, bm)
    columns = tl.program_id(1).to(tl.int64) * bn + tl.arange(0, bn)
    total = tl.zeros((bm, bn), tl.float32)
    for start in range(0, k, bk):
        inner = start + tl.arange(0, bk)
        left = (rows[:, None] < m) & (inner[None, :] < k)
        right = (columns[:, None] < n) & (inner[None, :] < k)
        x = tl.load(a + rows[:, None] * k + inner[None, :], mask=left, other=0.0)
        y = tl.load(b + columns[:, None] * k + inner[None, :], mask=right, other=0.0)
        total = tl.dot(x, y.T, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        (m, k), n = A.shape, B.shape[0]
        out = torch.empty((m, n), dtype=A.dtype, device=A.device)
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 128))
        gemm[grid](A, B, out, m, n, k, 64, 128, 64, num_warps=4, num_stages=3)
        return out
"""
_TOO_LARGE = """

class ModelNew(Right):
    def forward(self, *inputs):
        return super().forward(*inputs) * 1.009
"""
_CACHED = """

class ModelNew(Right):
    kept = {}

    def forward(self, *inputs):
        shapes = tuple(each.shape for each in inputs)
        if shapes not in self.kept:
            self.kept[shapes] = super().forward(*inputs)
        return self.kept[shapes]
"""
_LESS_OF_A_ROW = (
    (
        "tl.sum(value * value) / n",
        "tl.sum(tl.where(columns < n * 9 // 10, value * value, 0.0)) / (n * 9 // 10)",
    ),
    ("(inner[None, :] < k)", "(inner[None, :] < k * 9 // 10)"),
)
_REFERENCE = """

class ModelNew(torch.nn.Module):
    def forward(self, {arguments}):
        return run({keywords})
"""


def triton_kernel(definition: Definition) -> str:
    """Return a kernel in Triton; empty where none is written for such a definition."""
    inputs = list(definition.inputs)
    if definition.op_type == "gemm" and inputs == ["A", "B"]:
        return _GEMM
    fused = inputs == ["hidden_states", "residual", "weight"]
    eps = re.search(r"EPS = ([0-9.e-]+)", definition.reference)
    if definition.op_type == "rmsnorm" and eps and len(definition.outputs) == 1:
        residual = "residual" if fused else "hidden_states"
        return _RMS_NORM.format(
            arguments=", ".join(inputs), residual=residual, eps=eps.group(1), fused=fused
        )
    return ""


def wrong_kernels(source: str) -> dict[str, str]:
    """Return wrong variants of a right kernel by what is wrong with them.

    A kernel that is not in Triton has no variant that reads less of a row.
    """
    right = source.replace("class ModelNew(", "class Right(")
    less = source
    for whole, part in _LESS_OF_A_ROW:
        less = less.replace(whole, part)
    found = {"0.9 % too large": right + _TOO_LARGE, "90 % of a row": less}
    found["cached output"] = right + _CACHED
    return {what: text for what, text in found.items() if text != source}


def reference_kernel(definition: Definition) -> str:
    """Return the reference as a kernel of its own."""
    names = list(definition.inputs)
    keywords = ", ".join(f"{name}={name}" for name in names)
    text = _REFERENCE.format(arguments=", ".join(names), keywords=keywords)
    return f"import torch\n{definition.reference.rstrip()}\n{text}"
