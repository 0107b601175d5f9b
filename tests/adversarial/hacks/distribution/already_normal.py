"""Takes rows for normalized, as random ones nearly are.

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
        return x * self.norm.weight + self.norm.bias
