"""Leaves the output on the CPU.

problem: linear
devices: cuda
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
        return self.work(x).cpu()
