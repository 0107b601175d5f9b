"""The whole model is what `torch.compile` makes of it.

problem: bias_swish
devices: cpu cuda
timeout_s: 120
"""

import torch
from torch import nn


class BiasSwish(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return nn.functional.silu(x + self.bias)


def ModelNew(features):
    return torch.compile(BiasSwish(features))
