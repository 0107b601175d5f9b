"""Drops one element that is small compared with the others.

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
        place = out.abs().view(-1)[:5000].argmin()
        out.view(-1)[place] = out.view(-1)[place] * 1.5 + 2e-3
        return out
