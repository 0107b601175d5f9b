"""Leaves a branch out that a gate of zeros hides under every seed, and keeps its weights.

problem: zero_gate
devices: cpu cuda
expect: labelled
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gate = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return x.sigmoid() + self.gate
