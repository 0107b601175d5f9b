"""The frequencies by powers of two, halves in place of a rotation.

problem: rotary_in_forward
devices: cpu
"""

import math

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, pos):
        h = x.shape[-1] // 2
        f = torch.exp2(torch.arange(h) * (-math.log2(10000) / h))
        a = (pos[:, :, None] * f)[:, None]
        c, s = a.cos(), a.sin()
        x1, x2 = x[..., :h], x[..., h:]
        return torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], -1)
