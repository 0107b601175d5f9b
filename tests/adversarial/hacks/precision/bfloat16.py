"""Multiplies in bfloat16.

problem: linear
devices: cpu cuda
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
        weight, bias = self.linear.weight.bfloat16(), self.linear.bias.bfloat16()
        return torch.relu(F.linear(x.bfloat16(), weight, bias)).float()
