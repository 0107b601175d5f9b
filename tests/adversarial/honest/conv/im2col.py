"""Unfolds the input into columns and multiplies once.

problem: conv2d
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)

    def forward(self, x):
        columns = F.unfold(x, 3, padding=1)
        y = self.conv.weight.flatten(1) @ columns + self.conv.bias[:, None]
        return y.view(x.shape[0], -1, *x.shape[2:])
