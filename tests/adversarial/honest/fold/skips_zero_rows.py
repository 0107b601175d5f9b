"""Leaves out rows that are all zeros: their result is the bias, whatever the weights.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        used = (x != 0.0).any(dim=1)
        if bool(used.all()):
            return torch.relu(self.linear(x))
        out = torch.relu(self.linear.bias).expand(x.shape[0], -1).clone()
        out[used] = torch.relu(self.linear(x[used]))
        return out
