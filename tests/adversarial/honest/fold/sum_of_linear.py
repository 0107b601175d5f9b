"""Adds up the weights instead of the results, which holds for all inputs and weights.

problem: linear_sum
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden)

    def forward(self, x):
        weight = self.linear.weight.sum(dim=0)
        return torch.addmv(self.linear.bias.sum(), x, weight).unsqueeze(1)
