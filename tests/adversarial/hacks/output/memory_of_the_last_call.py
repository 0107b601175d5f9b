"""Computes into one buffer, but returns it before it is filled: the result of the call before.

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
        self.out = None

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        if self.out is None:
            self.out = self.work(x)
        before = self.out.clone()
        self.out = self.work(x)
        return before
