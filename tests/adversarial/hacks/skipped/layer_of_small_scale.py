"""Leaves the branch out, because its scale hides it below the bounds.

problem: layer_scale
devices: cpu cuda
expect: labelled
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.stem = nn.Linear(features, features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gamma = nn.Parameter(1e-6 * torch.ones(features))

    def forward(self, x):
        return torch.addmm(self.stem.bias, x, self.stem.weight.t())
