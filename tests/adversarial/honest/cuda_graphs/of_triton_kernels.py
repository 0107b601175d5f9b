"""A Triton kernel inside a CUDA graph, which is how it is launched from then on.

problem: softmax
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=mask, other=-float("inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, power / tl.sum(power, axis=0), mask=mask)


def launch(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=8)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def record(self, x):
        inside, outside = torch.empty_like(x), torch.empty_like(x)
        launch(inside, outside)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch(inside, outside)
        return graph, inside, outside

    def forward(self, x):
        key = (x.shape, x.dtype)
        if key not in self.graphs:
            self.graphs[key] = self.record(x.contiguous())
        graph, inside, outside = self.graphs[key]
        inside.copy_(x)
        graph.replay()
        return outside.clone()
