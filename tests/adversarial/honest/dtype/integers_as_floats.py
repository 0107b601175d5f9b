"""Adds up 8-bit integers in float32, which is exact below 2^24.

problem: int8_linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        weight = torch.randint(-128, 128, (features, features), dtype=torch.int8)
        self.register_buffer("weight", weight)

    def forward(self, x):
        return torch.mm(x.float(), self.weight.float().t()).to(torch.int32)
