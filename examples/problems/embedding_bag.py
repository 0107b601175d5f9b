"""Weighted sum of embedding rows per sample and their pairwise interactions, then a projection.

The sparse half of recommendation models (factorization machines, DeepFM, NFM): each sample names
rows of a large table by integer id and weighs them. The sum over all pairs of rows of their
element-wise product is 1/2 ((sum r)^2 - sum r^2) (He and Chua, Neural Factorization Machines for
Sparse Predictive Analytics, 2017). Fused, the gathered rows are never written to memory.
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
        self.project = nn.Linear(2 * width, width)

    def forward(self, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        weighted = self.table(ids) * weights.unsqueeze(-1)
        pooled = weighted.sum(dim=1)
        pairs = 0.5 * (pooled.square() - weighted.square().sum(dim=1))
        return torch.relu(self.project(torch.cat([pooled, pairs], dim=-1)))


def get_inputs():
    return [
        torch.randint(rows, (batch_size, ids_per_sample)),
        torch.rand(batch_size, ids_per_sample),
    ]


def get_init_inputs():
    return [rows, width]
