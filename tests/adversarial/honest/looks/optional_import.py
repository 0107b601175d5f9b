"""Imports what may be missing, and has a way of its own without it.

problem: bias_swish
devices: cpu cuda
"""

import torch
from torch import nn

try:
    import a_package_that_is_not_there as fused
except ImportError:
    fused = None


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        y = x + self.bias
        if fused is not None:
            return fused.swish(y)
        return y.mul_(torch.sigmoid(y))
