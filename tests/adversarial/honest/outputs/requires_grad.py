"""Turns gradients on for itself: the output has a `grad_fn`.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    @torch.enable_grad()
    def forward(self, x):
        return torch.relu(self.linear(x))
