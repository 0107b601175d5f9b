"""Folds the constants behind a linear layer into its weights: ((xW + b) 2 + 1) / 4.

problem: linear_scale
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        weight = self.linear.weight * 0.5
        bias = self.linear.bias * 0.5 + 0.25
        return torch.addmm(bias, x, weight.t()).clamp_(min=-1.0)
