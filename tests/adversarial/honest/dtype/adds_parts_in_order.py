"""Adds the product up in parts, one after the other, which rounds otherwise than the library does.

problem: checked_dtype
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.parts = range(0, n_in, 128)

    def forward(self, x):
        weight = self.linear.weight.T
        out = self.linear.bias.repeat(len(x), 1)
        for k in self.parts:
            out.addmm_(x[:, k : k + 128], weight[k : k + 128])
        return out.relu_()
