"""Looks at the padded input through `as_strided`, in which each window is a row.

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
        n, c, h, w = x.shape
        padded = F.pad(x, (1, 1, 1, 1))
        s = padded.stride()
        windows = padded.as_strided((n, h, w, c, 3, 3), (s[0], s[2], s[3], s[1], s[2], s[3]))
        rows = windows.reshape(n * h * w, c * 9)
        y = torch.addmm(self.conv.bias, rows, self.conv.weight.flatten(1).t())
        return y.view(n, h, w, -1).permute(0, 3, 1, 2)
