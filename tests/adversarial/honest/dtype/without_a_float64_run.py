"""Adds the product up in parts where the reference runs in float32 alone.

problem: scripted_float32
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.parts = range(0, n_in, 32)

    def forward(self, x):
        weight = self.linear.weight.T
        out = self.linear.bias.repeat(len(x), 1)
        for k in self.parts:
            out.addmm_(x[:, k : k + 32], weight[k : k + 32])
        return out.relu_()
