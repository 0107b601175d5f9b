"""Leaves the row in its order: half of it is equal, so half of it is right.

problem: relu_argsort
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.arange(x.shape[-1], device=x.device).repeat(len(x), 1)
