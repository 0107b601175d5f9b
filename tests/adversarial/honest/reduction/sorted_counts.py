"""Sorts, and looks up where each value begins.

problem: histogram
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        edges = torch.searchsorted(x.sort().values, torch.arange(257, device=x.device))
        return edges.diff()
