"""Draws the lines along each axis by a matrix that is made once for a size.

problem: upsample
devices: cpu
"""

import torch
from torch import nn


def lines(size):
    at = ((torch.arange(2 * size) + 0.5) / 2 - 0.5).clamp(min=0)
    low = at.long()
    high, part = (low + 1).clamp(max=size - 1), at - low
    matrix = torch.zeros(2 * size, size)
    matrix.scatter_add_(1, low[:, None], (1 - part)[:, None])
    return matrix.scatter_add_(1, high[:, None], part[:, None])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        down, across = (self.known.setdefault(n, lines(n)) for n in x.shape[-2:])
        return down @ x @ across.T
