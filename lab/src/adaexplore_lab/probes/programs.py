"""Probes whose witness and remedy are one program with a hole, filled wrong and right."""

from __future__ import annotations

import re
import textwrap

from adaexplore.core.rule import Kind
from adaexplore_lab.probes.base import Probe

_HOLE = re.compile(r"^( *)HOLE$|HOLE", re.MULTILINE)


def reference(expression: str, inputs: str, *, args: str = "x", setup: str = "pass") -> str:
    """A reference that returns `expression` of its arguments; `setup` runs in its constructor."""
    return f"""\
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {setup}

    def forward(self, {args}):
        return {expression}


def get_inputs():
    return [{inputs}]
"""


def program(kernel: str, forward: str, *, args: str = "x", setup: str = "pass") -> str:
    """A candidate of a kernel, with its decorators, and the body of `forward`."""
    return f"""\
import torch
import triton
import triton.language as tl
from torch import nn


{textwrap.dedent(kernel).strip()}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {setup}

    def forward(self, {args}):
{textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)}
"""


def filled(template: str, text: str) -> str:
    """The template with `text` for its HOLE, indented as the hole is if that has its own line."""
    text = textwrap.dedent(text).strip("\n")
    return _HOLE.sub(
        lambda hole: text if hole[1] is None else textwrap.indent(text, hole[1]), template
    )


def probe(
    kind: Kind,
    name: str,
    statement: str,
    topics: tuple[str, ...],
    problem: str,
    template: str,
    wrong: str,
    right: str,
) -> Probe:
    """The probe of a problem whose candidates are a template with its HOLE filled."""
    return Probe(
        name=name,
        kind=kind,
        statement=statement,
        topics=topics,
        reference=problem,
        witness=filled(template, wrong),
        remedy=filled(template, right),
    )


REDUCE_ROWS = program(
    """
    @triton.jit
    def kernel(x_ptr, y_ptr, columns, B: tl.constexpr):
        row = tl.program_id(0)
        i = tl.arange(0, B)
        m = i < columns
        p = x_ptr + row * columns + i
        HOLE
        tl.store(y_ptr + row, y)
    """,
    """
    rows, columns = x.shape
    y = torch.empty(rows, device=x.device)
    kernel[(rows,)](x, y, columns, B=triton.next_power_of_2(columns))
    return y
    """,
)
"""One number a row: `y` from the pointers `p` and the mask `m` of its padded columns `i`."""

MAP_ROWS = program(
    """
    @triton.jit
    def kernel(x_ptr, y_ptr, rows, columns, B: tl.constexpr):
        row = tl.program_id(0)
        i = tl.arange(0, B)
        m = i < columns
        p = x_ptr + row * columns + i
        HOLE
        tl.store(y_ptr + row * columns + i, y, mask=m)
    """,
    """
    y = torch.empty_like(x)
    rows, columns = x.shape
    kernel[(rows,)](x, y, rows, columns, B=triton.next_power_of_2(columns))
    return y
    """,
)
"""A row for a row, as `REDUCE_ROWS` otherwise."""

CHUNKS = program(
    """
    @triton.jit
    def kernel(x_ptr, y_ptr, columns, B: tl.constexpr):
        row = tl.program_id(0)
        p = x_ptr + row * columns
        HOLE
    """,
    """
    rows, columns = x.shape
    y = OUTPUT
    kernel[(rows,)](x, y, columns, B=32)
    return y
    """,
)
"""A row in several blocks: the body loops, and stores into the OUTPUT."""

MATMUL = program(
    """
    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
        n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            km, kn = k[None, :], k[:, None]
            a = tl.load(a_ptr + m * K + km, mask=(m < M) & (km < K), other=0.0)
            b = tl.load(b_ptr + B_OFFSET, mask=(kn < K) & (n < N), other=0.0)
            STEP
        tl.store(c_ptr + m * N + n, acc, mask=(m < M) & (n < N))
    """,
    """
    (M, K), N = a.shape, COLUMNS
    c = torch.empty(M, N, device=a.device)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
    kernel[grid](a, b, c, M, N, K, LAUNCH)
    return c
    """,
    args="a, b",
)


def matmul(
    *,
    offset: str = "kn * N + n",
    columns: str = "b.shape[1]",
    step: str = 'acc += tl.dot(a, b, input_precision="ieee")',
    launch: str = "BM=16, BN=16, BK=16",
) -> str:
    """A product of a and b in blocks, with a HOLE in one of its parts."""
    parts = {"B_OFFSET": offset, "COLUMNS": columns, "STEP": step, "LAUNCH": launch}
    template = MATMUL
    for part, text in parts.items():
        template = template.replace(part, text)
    return template
