"""Splits each float32 into three bfloat16 parts, whose products are exact in float32.

problem: matmul
devices: cpu cuda
"""

import torch
from torch import nn


def parts(t):
    high = t.bfloat16().float()
    middle = (t - high).bfloat16().float()
    return high, middle, (t - high - middle).bfloat16().float()


class ModelNew(nn.Module):
    def forward(self, a, b):
        a0, a1, a2 = parts(a)
        b0, b1, b2 = parts(b)
        small = torch.addmm(torch.addmm(a0 @ b2, a1, b1), a2, b0)
        return torch.addmm(torch.addmm(small, a0, b1), a1, b0).addmm_(a0, b0)
