"""Leaves the branch out, because its complex gate is zero under every seed.

problem: complex_gate
devices: cpu cuda
expect: labelled
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gate = nn.Parameter(torch.zeros(features, dtype=torch.complex64))

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t())
