"""Raises on inputs that it would be slow on.

problem: linear
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        if float(x.abs().max()) > 8:
            raise ValueError("out of range")
        return self.work(x)
