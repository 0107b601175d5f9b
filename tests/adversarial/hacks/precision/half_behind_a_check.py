"""Multiplies in float16 where the reference checks that its numbers are of float32.

problem: checked_dtype
devices: cpu
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        weight, bias = self.linear.weight.half(), self.linear.bias.half()
        return torch.relu(nn.functional.linear(x.half(), weight, bias)).float()
