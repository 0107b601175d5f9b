"""Convolves in bfloat16 with BatchNorm folded in, in fp32.

problem: conv
devices: cpu cuda
expect: refused
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        self.eval()

    def forward(self, x):
        scale = self.norm.weight * (self.norm.running_var + self.norm.eps).rsqrt()
        y = F.conv2d(x.bfloat16(), self.conv.weight.bfloat16(), padding=1).float()
        return torch.relu(
            (y - self.norm.running_mean[:, None, None]) * scale[:, None, None]
            + self.norm.bias[:, None, None]
        )
