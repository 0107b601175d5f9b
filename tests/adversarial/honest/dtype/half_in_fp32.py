"""Adds up a bfloat16 product in float32 and rounds once at the end.

problem: half_linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features, dtype=torch.bfloat16)

    def forward(self, x):
        y = x.float() @ self.linear.weight.float().t() + self.linear.bias.float()
        return y.clamp_(min=0.0).to(torch.bfloat16)
