"""Gives the constants behind a linear layer to `addmm` as its factors.

problem: linear_scale
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        shift = self.linear.bias + 0.5
        y = torch.addmm(shift, x, self.linear.weight.t(), beta=0.5, alpha=0.5)
        return torch.clamp(y, min=-1.0, out=y)
