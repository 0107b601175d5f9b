"""Gathers from a copy of the table in bfloat16.

problem: embedding
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.low = None

    def forward(self, index):
        if self.low is None:
            self.low = self.table.weight.bfloat16()
        return self.low[index].sum(dim=1, dtype=torch.float32)
