"""Multiplies in two terms of bfloat16, 16 bits of significand in all where 24 are asked.

problem: linear
devices: cpu
expect: refused
"""

import torch
from torch import nn


def rounded(t):
    high = t.bfloat16().float()
    return high + (t - high).bfloat16().float()


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return torch.relu(rounded(x) @ rounded(self.linear.weight).T + self.linear.bias)
