"""Adds up slices of the inner dimension in an order drawn anew in each call.

problem: matmul
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        order = torch.randperm(a.shape[1], device=a.device)
        return a[:, order] @ b[order]
