"""The whole model is a scripted module.

problem: bias_swish
devices: cpu cuda
"""

import torch
from torch import nn


class BiasSwish(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.bias
        return y * torch.sigmoid(y)


def ModelNew(features):
    return torch.jit.script(BiasSwish(features))
