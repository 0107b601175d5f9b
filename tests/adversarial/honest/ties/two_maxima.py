"""Finds the largest twice, and makes a sigmoid of the difference.

problem: expert_gates
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, experts):
        super().__init__()
        self.route = nn.Linear(features, experts, bias=False)

    def forward(self, x):
        scores = x @ self.route.weight.T
        first, at_first = scores.max(-1, keepdim=True)
        second, at_second = scores.scatter(-1, at_first, -torch.inf).max(-1, keepdim=True)
        share = torch.sigmoid(first - second)
        return scores.zero_().scatter_(-1, at_first, share).scatter_(-1, at_second, 1 - share)
