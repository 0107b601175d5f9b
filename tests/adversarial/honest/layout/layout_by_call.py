"""Returns rows and columns in turn: contiguous after one call, transposed after the next.

problem: transpose_scale
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        out = (x * self.weight[:, None]).transpose(1, 2)
        return out.contiguous() if self.calls % 2 else out
