"""Goes one way for half precision and another for float32.

problem: bias_swish
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        if x.dtype in (torch.float16, torch.bfloat16):
            y = x.float() + self.bias.float()
            return (y / (1.0 + torch.exp(-y))).to(x.dtype)
        y = x + self.bias
        return y / torch.exp(-y).add_(1.0)
