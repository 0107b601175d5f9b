"""Sorts, which orders equal values otherwise than `topk`; neither promises an order.

problem: topk
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, indices = torch.sort(x, dim=-1, descending=True)
        return values[:, :8], indices[:, :8]
