"""Merges BatchNorm (in eval mode) into the convolution, again whenever a weight has changed.

problem: conv
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        nn.init.normal_(self.norm.running_mean, std=0.2)
        nn.init.uniform_(self.norm.running_var, 0.5, 1.5)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)
        self.eval()
        self._folded = (None, None, None)

    def folded(self):
        norm = self.norm
        tensors = (
            self.conv.weight,
            norm.weight,
            norm.bias,
            norm.running_mean,
            norm.running_var,
        )
        key = tuple((t.data_ptr(), t._version) for t in tensors)
        if self._folded[0] != key:
            scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            weight = self.conv.weight * scale[:, None, None, None]
            self._folded = (key, weight, norm.bias - norm.running_mean * scale)
        return self._folded[1:]

    def forward(self, x):
        weight, bias = self.folded()
        return F.conv2d(x, weight, bias, padding=1).relu_()
