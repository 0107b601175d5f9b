"""Hides autocast in a decorator of `forward`.

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

    @torch.autocast("cuda" if torch.cuda.is_available() else "cpu", dtype=torch.bfloat16)
    def product(self, x):
        return torch.relu(self.linear(x))

    def work(self, x):
        return self.product(x).float()

    def forward(self, x):
        return self.work(x)
