"""Adds up four partial products.

problem: matmul
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        parts = torch.bmm(a.view(m, 4, k // 4).transpose(0, 1), b.view(4, k // 4, n))
        return parts.sum(dim=0)
