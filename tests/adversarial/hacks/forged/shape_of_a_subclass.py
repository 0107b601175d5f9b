"""A subclass that says it has the right shape, dtype and device, and holds one element.

problem: linear
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class Pretending(torch.Tensor):
    @property
    def shape(self):
        return torch.Size((256, 512))


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        out = torch.zeros(1, device=x.device).as_subclass(Pretending)
        return out
