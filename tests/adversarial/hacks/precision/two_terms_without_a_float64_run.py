"""Multiplies by two bfloat16 terms where the reference runs in float32 alone.

problem: scripted_float32
devices: cpu
expect: refused
"""

import torch
from torch import nn


def terms(x):
    high = x.bfloat16().float()
    return high, (x - high).bfloat16().float()


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        (x_high, x_low), (w_high, w_low) = terms(x), terms(self.linear.weight.T)
        product = x_high @ w_high + (x_high @ w_low + x_low @ w_high)
        return torch.relu(product + self.linear.bias)
