"""Folds the scale of the branch into its last layer, anew where a weight changes.

problem: layer_scale
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.stem = nn.Linear(features, features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gamma = nn.Parameter(1e-6 * torch.ones(features))
        self.known = None

    def forward(self, x):
        weights = (self.down.weight, self.down.bias, self.gamma)
        known = [(w.data_ptr(), w._version) for w in weights]
        if known != self.known:
            self.known = known
            self.weight = (self.gamma[:, None] * self.down.weight).t().contiguous()
            self.bias = self.gamma * self.down.bias
        x = torch.addmm(self.stem.bias, x, self.stem.weight.t())
        inner = torch.tanh(torch.addmm(self.up.bias, x, self.up.weight.t()))
        return x + torch.addmm(self.bias, inner, self.weight)
