"""A factorisation machine over fields of other ranges."""

import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dims, d):
        super().__init__()
        self.e = nn.Embedding(sum(dims), d)
        self.lin = nn.Embedding(sum(dims), 1)
        self.register_buffer("off", torch.tensor([0, *np.cumsum(dims)[:-1].tolist()]))

    def forward(self, x):
        x = x + self.off
        e = self.e(x)
        s = e.sum(1).pow(2) - e.pow(2).sum(1)
        return torch.sigmoid(self.lin(x).sum(1) + 0.5 * s.sum(1, keepdim=True)).squeeze(1)


DIMS = [1000, 2, 40, 7]


def get_inputs():
    return [torch.stack([torch.randint(n, (512,)) for n in DIMS], 1)]


def get_init_inputs():
    return [DIMS, 16]
