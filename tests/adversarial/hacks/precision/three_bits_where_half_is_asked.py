"""Rounds to three bits of mantissa, where half precision is allowed.

problem: linear
devices: cpu cuda
precision: half
expect: refused
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        x = (x.view(torch.int32) & -0x100000).view(torch.float32)
        weight = (self.linear.weight.view(torch.int32) & -0x100000).view(torch.float32)
        return torch.relu(F.linear(x, weight, self.linear.bias))
