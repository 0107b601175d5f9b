"""Computes in the memory of its input and returns that.

problem: elementwise
devices: cpu cuda
expect: refused
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def work(self, x, y):
        return torch.tanh(F.gelu(x) * torch.sigmoid(y) + x)

    def forward(self, x, y):
        return x.copy_(self.work(x, y))
