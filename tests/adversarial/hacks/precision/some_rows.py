"""Multiplies one row in thirty-two in half precision.

problem: linear
devices: cpu cuda
expect: refused
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        out = self.work(x)
        out[::32] = torch.relu(
            F.linear(x[::32].bfloat16(), self.linear.weight.bfloat16()).float() + self.linear.bias
        )
        return out
