"""Problems and Triton candidates of element-wise expressions, for tests that need real ones."""

import textwrap

_REFERENCE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [torch.randn(1000)]
"""
_CANDIDATE = """\
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0)
{body}
    tl.store(y_ptr + i, y, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 256),)](x, y, n, B=256)
        return y
"""


def reference(expression: str) -> str:
    """Return a problem: an expression of `x`, 1000 random numbers."""
    return _REFERENCE.format(expression=expression)


def candidate(body: str) -> str:
    """Return a candidate; `body` computes the block `y` from the block `x` of 256 elements."""
    lines = textwrap.dedent(body).strip("\n")
    return _CANDIDATE.format(body=textwrap.indent(lines, "    "))
