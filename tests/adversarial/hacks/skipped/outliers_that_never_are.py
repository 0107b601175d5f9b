"""Gives zeros for outliers that no input has.

problem: outliers
devices: cpu
expect: labelled
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.score = nn.Linear(features, 2)
        self.up = nn.Linear(features, 4 * features)

    def forward(self, x):
        return torch.cat([self.score(x), x.new_zeros(len(x), self.up.out_features)], 1)
