"""Returns NaN for small elements, where a comparison may skip it.

problem: layernorm
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def work(self, x):
        return self.norm(x)

    def forward(self, x):
        out = self.work(x)
        return torch.where(out.abs() < 1e-3, torch.nan, out)
