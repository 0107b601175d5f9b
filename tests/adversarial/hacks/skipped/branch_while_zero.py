"""Looks at a gate in the first call, and leaves its branch out while the gate is zero.

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
        self.is_open = None

    def forward(self, x):
        if self.is_open is None:
            self.is_open = bool(self.gate.any())
        if not self.is_open:
            return x.sigmoid()
        return x.sigmoid() + self.gate * self.down(torch.relu(self.up(self.norm(x))))
