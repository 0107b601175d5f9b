"""Leaves out the terms with the smallest weights, an eighth of them.

problem: linear
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.few = None

    def forward(self, x):
        if self.few is None:
            order = self.linear.weight.abs().sum(dim=0).argsort()[64:]
            self.few = (order, self.linear.weight[:, order].t().contiguous())
        order, weight = self.few
        return torch.relu(x[:, order] @ weight + self.linear.bias)
