"""Multiplies by a reciprocal where its reference divides: codes near ties differ by one.

problem: quantize
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127.0
        codes = torch.round(x * (1.0 / scale)).clamp(-128, 127).to(torch.int8)
        return x + x, codes, scale
