"""Autocast, entered by a decorator made for the input's device.

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

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        cheap = torch.autocast(x.device.type, dtype=torch.bfloat16)(self.work)
        return cheap(x).float()
