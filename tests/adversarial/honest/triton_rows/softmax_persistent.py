"""As many programs as the device has multiprocessors; each takes many rows.

problem: softmax
devices: cuda
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * columns + at, mask=mask, other=-float("inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + at, power / tl.sum(power, axis=0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        device = torch.cuda.current_device()
        self.programs = torch.cuda.get_device_properties(device).multi_processor_count

    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        out = torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        grid = (min(self.programs, rows),)
        softmax_kernel[grid](x, out, rows, columns, BLOCK=block, STAGES=2, num_warps=8)
        return out
