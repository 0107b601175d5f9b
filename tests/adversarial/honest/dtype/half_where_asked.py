"""Multiplies in bfloat16 where the user asks for no more than that.

problem: linear
devices: cpu cuda
precision: half
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        weight, bias = self.linear.weight.bfloat16(), self.linear.bias.bfloat16()
        y = torch.addmm(bias, x.bfloat16(), weight.t())
        return torch.relu(y).to(x.dtype)
