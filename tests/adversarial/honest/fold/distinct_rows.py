"""Fetches each row of the table once, however often it is asked for.

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
        distinct, where = torch.unique(index, return_inverse=True)
        rows = self.table.weight[distinct]
        return rows[where].sum(dim=1)
