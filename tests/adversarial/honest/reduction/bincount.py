"""Counts with `bincount`.

problem: histogram
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.bincount(x, minlength=256)
