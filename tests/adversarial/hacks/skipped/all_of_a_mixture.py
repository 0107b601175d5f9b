"""Leaves out the branch of which a mixture of one takes nothing.

problem: frozen_gates
devices: cpu
expect: labelled
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.near = nn.Linear(features, features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.wide = nn.Linear(features, 4 * features)
        self.back = nn.Linear(4 * features, features)
        self.gate = nn.Parameter(torch.zeros(()), requires_grad=False)
        self.register_buffer("share", torch.tensor(1.0))

    def forward(self, x):
        return torch.relu(self.near(x) + self.gate * self.down(torch.relu(self.up(x))))
