"""Weighted sum of embedding rows per sample, then a projection.

The sparse half of recommendation models (DLRM, Wide & Deep): each sample names some rows of a large
table by integer id and weighs them. Gathering rows is bound by memory latency.
"""

import torch
from torch import nn

batch_size = 64
ids_per_sample = 64
rows = 10_000
width = 128


class Model(nn.Module):
    def __init__(self, rows: int, width: int):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.project = nn.Linear(width, width)

    def forward(self, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        pooled = (self.table(ids) * weights.unsqueeze(-1)).sum(dim=1)
        return torch.relu(self.project(pooled))


def get_inputs():
    return [
        torch.randint(rows, (batch_size, ids_per_sample)),
        torch.rand(batch_size, ids_per_sample),
    ]


def get_init_inputs():
    return [rows, width]
