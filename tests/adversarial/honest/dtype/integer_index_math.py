"""Looks rows up through one flat 64-bit index instead of the embedding's own kernel.

problem: embedding
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, index):
        rows = self.table.weight.index_select(0, index.flatten())
        return rows.view(*index.shape, -1).sum(dim=1)
