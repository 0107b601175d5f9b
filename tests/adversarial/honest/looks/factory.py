"""`ModelNew` is a function that builds the model.

problem: bias_swish
devices: cpu cuda
"""

import torch
from torch import nn


class BiasSwish(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, *args, **kwargs):
        (x,) = args
        return nn.functional.silu(x + self.bias, **kwargs)


def ModelNew(features):
    return BiasSwish(features)
