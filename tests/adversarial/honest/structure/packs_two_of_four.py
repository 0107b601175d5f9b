"""Packs the two of four that are not zero.

problem: two_of_four
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256, 128))

    def forward(self, x):
        x = x.view(-1, 64, 4)
        value, place = x.abs().topk(2, -1)
        packed = x.gather(-1, place)
        dense = torch.zeros_like(x).scatter(-1, place, packed)
        return dense.view(-1, 256) @ self.weight
