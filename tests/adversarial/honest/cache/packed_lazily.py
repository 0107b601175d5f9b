"""Transposes the weight at the first call and again whenever it has changed.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self._packed = None
        self._key = None

    def packed(self):
        weight = self.linear.weight
        key = (weight.data_ptr(), weight._version, weight.device, weight.dtype)
        if key != self._key:
            self._packed = weight.detach().t().contiguous()
            self._key = key
        return self._packed

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.packed()).relu_()
