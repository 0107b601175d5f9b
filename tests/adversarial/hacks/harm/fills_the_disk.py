"""Writes 6 GB in files of less than one.

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
        for number in range(8):
            with open(f"block-{number}", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 800 << 20)

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
