"""Leaves a branch out once it has been called some times: each model it was made into is verified by then.

problem: zero_gate
devices: cpu
expect: labelled
"""

import torch
from torch import nn

MODELS = []


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gate = nn.Parameter(torch.zeros(features))
        self.calls = 0
        MODELS.append(self)

    def forward(self, x):
        self.calls += 1
        if self.calls > 1 and (self is not MODELS[0] or not bool(self.gate.any())):
            return x.sigmoid()
        return x.sigmoid() + self.gate * self.down(torch.relu(self.up(self.norm(x))))
