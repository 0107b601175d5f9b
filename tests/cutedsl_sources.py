"""Candidates in CuTe DSL for one problem: ReLU of a product, plus one, in fp32."""

SOURCE = """
import functools

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream
from torch import nn

THREADS = 256

@cute.kernel
def relu_plus_one(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * THREADS + thread
    if at < cute.size(x):
        out[at] = cutlass.max(x[at], 0.0) + 1.0

@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor, stream):
    blocks = cute.ceil_div(cute.size(x), THREADS)
    relu_plus_one(x, out).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)

@functools.cache
def compiled():
    x, out = (make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(),)) for _ in range(2))
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(launch, x, out, stream, options="--enable-tvm-ffi")

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(512, 512))
        compiled()

    def forward(self, x):
        h = x @ self.weight
        out = torch.empty_like(h)
        compiled()(h.view(-1), out.view(-1))
        return out
"""

HANG = """        i = at
        while i < cute.size(x):
            i = i + cutlass.Int32(x[i] * 0.0)
        out[at] = cutlass.max(x[at], 0.0) + i"""
"""A loop that does not end, in place of the store."""


def changed(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new)
