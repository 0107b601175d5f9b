"""Looks rows up and adds them in one go.

problem: embedding
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, index):
        return F.embedding_bag(index, self.table.weight, mode="sum")
