"""Registers the transposed weight and the bias under other names, from the same random draws.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        linear = nn.Linear(n_in, n_out)
        self.packed = nn.Parameter(linear.weight.detach().t().contiguous())
        self.shift = nn.Parameter(linear.bias.detach().clone())

    def forward(self, x):
        return torch.addmm(self.shift, x, self.packed).relu_()
