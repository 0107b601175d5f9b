"""Makes its table under another default dtype, which it puts back.

problem: spectrum
devices: cpu cuda
"""

import math

import torch
from torch import nn


def table():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        n = torch.arange(128.0)
        angle = torch.outer(n, torch.arange(65.0)).remainder(128.0) * (2.0 * math.pi / 128.0)
        return torch.cat([angle.cos(), -angle.sin()], dim=1).float()
    finally:
        torch.set_default_dtype(before)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", table(), persistent=False)

    def forward(self, x):
        real, imaginary = (x @ self.table).chunk(2, dim=-1)
        return torch.complex(real.contiguous(), imaginary.contiguous())
