"""Recomputes only rows whose first element changed since the last call.

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
            self.mark, self.out = x[:, 0].clone(), self.work(x)
            return self.out
        changed = (x[:, 0] != self.mark).nonzero()[:8, 0]
        self.out[changed] = self.work(x[changed])
        return self.out
