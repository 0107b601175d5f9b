"""Seeds the generator for random numbers of its own, after the weights were drawn.

problem: linear
devices: cpu cuda
"""

import random

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        torch.manual_seed(1234)
        random.seed(1234)
        trial = torch.randn(16, n_in)
        self.bounded = bool((self.linear(trial).abs() < 1e6).all())

    def forward(self, x):
        y = self.linear(x)
        return torch.relu(y) if self.bounded else torch.relu(y.double()).to(x.dtype)
