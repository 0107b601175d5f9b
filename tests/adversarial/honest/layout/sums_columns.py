"""Sums down the columns of a transposed copy, and returns the transposed view.

problem: cumsum
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        columns = x.t().contiguous()
        return columns.cumsum(dim=0).t()
