"""All fields look up one table.

problem: fields
devices: cpu
"""

import numpy as np
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dims, d):
        super().__init__()
        self.e = nn.Embedding(sum(dims), d)
        self.lin = nn.Embedding(sum(dims), 1)
        self.register_buffer("off", torch.tensor([0, *np.cumsum(dims)[:-1].tolist()]))

    def forward(self, x):
        x = x + self.off
        e = self.e.weight[x]
        s, q = e.sum(1), torch.einsum("bfd,bfd->b", e, e)
        z = self.lin.weight[x].sum((1, 2)) + 0.5 * (torch.einsum("bd,bd->b", s, s) - q)
        return 1 / (1 + torch.exp(-z))
