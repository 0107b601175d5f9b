"""Leaves out the branch whose gate is the sigmoid of -20, and keeps the experts.

problem: closed_gates
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
        self.logit = nn.Parameter(torch.full((features,), -20.0))
        self.shares = nn.Parameter(torch.tensor([1.0, 0.0]), requires_grad=False)

    def forward(self, x):
        near = self.near(x)
        far = self.back(torch.relu(self.wide(x)))
        return torch.relu(self.shares[0] * near + self.shares[1] * far)
