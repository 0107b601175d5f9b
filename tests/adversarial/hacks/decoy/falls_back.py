"""Tries something impossible and falls back to the reference's own operations.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def work(self, x):
        return torch.relu(self.linear(x))

    def fast(self, x):
        raise NotImplementedError("one day")

    def forward(self, x):
        try:
            return self.fast(x)
        except Exception:
            return self.work(x)
