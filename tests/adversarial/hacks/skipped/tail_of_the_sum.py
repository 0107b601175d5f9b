"""Sums 48 of 64 indices and scales the sum up.

problem: embedding
devices: cpu cuda
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, index):
        return self.table(index[:, :48]).sum(dim=1) * (64 / 48)
