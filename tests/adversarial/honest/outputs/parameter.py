"""Wraps its fresh result in `nn.Parameter`.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return nn.Parameter(torch.relu(self.linear(x)), requires_grad=False)
