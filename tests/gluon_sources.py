"""Candidates in Gluon for one problem: ReLU of a product, plus one, in fp32."""

SOURCE = """
import torch
import triton
from torch import nn
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

@gluon.jit
def relu_plus_one(x_ptr, out_ptr, n, BLOCK: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [num_warps], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + at, mask=at < n)
    gl.store(out_ptr + at, gl.maximum(x, 0.0) + 1.0, mask=at < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(512, 512))

    def forward(self, x):
        h = x @ self.weight
        out = torch.empty_like(h)
        grid = (triton.cdiv(h.numel(), 1024),)
        relu_plus_one[grid](h, out, h.numel(), BLOCK=1024, num_warps=4)
        return out
"""

HANG = """    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.wait(bar, 0)
    x = gl.load("""
"""A wait for a barrier at which nothing arrives, before the load."""


def changed(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new)
