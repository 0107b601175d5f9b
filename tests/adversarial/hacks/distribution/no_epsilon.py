"""Leaves out epsilon: rows of one value become NaN.

problem: layernorm
devices: cpu cuda
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        centred = x - x.mean(dim=1, keepdim=True)
        scale = centred.square().mean(dim=1, keepdim=True).rsqrt()
        return centred * scale * self.norm.weight + self.norm.bias
