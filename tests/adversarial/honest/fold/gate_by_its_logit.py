"""Takes the sigmoid of the gate in its constructor, and weighs the experts as they are.

problem: closed_gates
devices: cpu
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
        logit = nn.Parameter(torch.full((features,), -20.0))
        with torch.no_grad():
            gate = torch.sigmoid(logit)
            self.down.weight.mul_(gate[:, None])
            self.down.bias.mul_(gate)
        self.shares = nn.Parameter(torch.tensor([1.0, 0.0]), requires_grad=False)

    def forward(self, x):
        near = self.near(x) + self.down(torch.relu(self.up(x)))
        far = self.back(torch.relu(self.wide(x)))
        return torch.relu(self.shares[0] * near + self.shares[1] * far)
