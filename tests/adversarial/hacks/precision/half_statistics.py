"""Reduces rows in bfloat16 and applies the result in fp32.

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
        low = x.bfloat16()
        mean = low.mean(dim=1, keepdim=True).float()
        scale = (
            (low - mean.bfloat16())
            .square()
            .mean(dim=1, keepdim=True)
            .float()
            .add(self.norm.eps)
            .rsqrt()
        )
        return (x - mean) * scale * self.norm.weight + self.norm.bias
