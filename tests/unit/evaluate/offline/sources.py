"""Problems, and correct Triton candidates for them."""

HEADER = """
import torch
import triton
import triton.language as tl
from torch import nn
"""

SOFTMAX = """
import torch
from torch import nn

rows = 2048
cols = 4096

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)

def get_inputs():
    return [torch.randn(rows, cols)]
"""

SOFTMAX_KERNEL = (
    HEADER
    + """
@triton.jit
def shifted(v, top):
    return tl.exp(v - top)

@triton.jit
def softmax(x, out, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < cols, other=-float("inf"))
    e = shifted(v, tl.max(v, axis=0))
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=at < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, cols = x.shape
        softmax[(rows,)](x, out, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols))
        return out
"""
)

MATMUL = """
import torch
from torch import nn

M = 1024
K = 2048
N = 512

class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]
"""

MATMUL_KERNEL = (
    HEADER
    + """
@triton.jit
def matmul(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        at = i * BK + k
        x = tl.load(a + m[:, None] * K + at[None, :],
                    mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        y = tl.load(b + at[:, None] * N + n[None, :],
                    mask=(at[:, None] < K) & (n[None, :] < N), other=0.0)
        total += tl.dot(x, y, input_precision="ieee")
    tl.store(out + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))

class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = torch.empty(M, N, device=a.device)
        BM, BN, BK = 64, 64, 32
        matmul[(triton.cdiv(M, BM), triton.cdiv(N, BN))](a, b, out, M, N, K, BM, BN, BK)
        return out
"""
)

DOUBLE = """
import torch
from torch import nn

size = 1 << 20

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(1048576)]
"""

DOUBLE_KERNEL = (
    HEADER
    + """
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, v * 2, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""
)


def changed(source, old, new):
    """Return the source with one replacement."""
    assert old in source
    return source.replace(old, new)
