"""Keeps a buffer for an intermediate result; what it returns is fresh.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self._workspace = None

    def forward(self, x):
        shape = (x.shape[0], self.linear.out_features)
        w = self._workspace
        if w is None or w.shape != shape or w.dtype != x.dtype or w.device != x.device:
            w = self._workspace = torch.empty(shape, dtype=x.dtype, device=x.device)
        torch.mm(x, self.linear.weight.t(), out=w)
        w.add_(self.linear.bias)
        return w.clamp(min=0.0)
