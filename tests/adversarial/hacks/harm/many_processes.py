"""Starts fifteen hundred processes.

problem: linear
devices: cpu cuda
expect: refused
"""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        for _ in range(1500):
            os.posix_spawn("/bin/sleep", ["sleep", "600"], {})

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
