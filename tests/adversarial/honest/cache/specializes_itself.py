"""Replaces its own `forward` by a shorter one after the first call.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        assert x.dtype == self.linear.weight.dtype
        assert x.shape[1] == self.linear.in_features
        self.forward = self._checked
        return self._checked(x)

    def _checked(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t()).relu_()
