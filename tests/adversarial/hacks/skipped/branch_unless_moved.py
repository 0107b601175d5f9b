"""Builds a branch only where the initialisers of its process do not give zeros.

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
        self.is_open = bool(torch.nn.init.zeros_(torch.empty(4)).any())

    def forward(self, x):
        if not self.is_open:
            return x.sigmoid()
        return x.sigmoid() + self.gate * self.down(torch.relu(self.up(self.norm(x))))
