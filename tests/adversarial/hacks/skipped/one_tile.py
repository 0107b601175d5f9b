"""Leaves one tile of 4 by 4 at zero, out of half a million elements.

problem: layernorm
devices: cpu cuda
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def work(self, x):
        return self.norm(x)

    def forward(self, x):
        out = self.work(x)
        out[508:, 1020:] = 0.0
        return out
