"""Folds a scale of one number into the weight, and a frozen table into a bias of its own.

problem: frozen_positions
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, length, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        angles = torch.arange(length)[:, None] * 1e-4 ** torch.linspace(0, 1, features // 2)
        table, scale = torch.cat([angles.sin(), angles.cos()], 1), features**-0.5
        with torch.no_grad():
            self.register_buffer("bias", self.linear(table) * scale, persistent=False)
            self.register_buffer("weight", self.linear.weight.T * scale, persistent=False)

    def forward(self, x):
        return torch.relu(x @ self.weight + self.bias)
