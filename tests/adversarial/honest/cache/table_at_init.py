"""Multiplies with a table of cosines and sines that the constructor makes in float64.

problem: spectrum
devices: cpu cuda
"""

import math

import torch
from torch import nn

LENGTH = 128


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        n = torch.arange(LENGTH, dtype=torch.float64)
        k = torch.arange(LENGTH // 2 + 1, dtype=torch.float64)
        angle = torch.outer(n, k).remainder(LENGTH) * (-2.0 * math.pi / LENGTH)
        table = torch.stack([angle.cos(), angle.sin()], dim=-1).reshape(LENGTH, -1)
        self.register_buffer("table", table.float(), persistent=False)

    def forward(self, x):
        pairs = (x @ self.table).view(*x.shape[:-1], LENGTH // 2 + 1, 2)
        return torch.view_as_complex(pairs)
