"""Compares with `>=` where the reference happens to compare with `>`.

problem: coarse_argmax
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        coarse = torch.floor(2 * x)
        return x.shape[-1] - 1 - coarse.flip(-1).argmax(dim=-1)
