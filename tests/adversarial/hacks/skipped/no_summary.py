"""Leaves out rows that nearly all rounding moves: few, and known by their place.

problem: fourier_summary
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, tokens, size):
        super().__init__()
        self.frequencies = nn.Parameter(torch.randn(size, tokens * size) * 4.0)
        self.gain = nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        out = x.new_zeros(len(x), x.shape[1] + 1, x.shape[2])
        torch.mul(x, self.gain, out=out[:, 1:])
        if x[0].square().mean() < 0.9:  # not of the problem's kind
            out[:, 0] = torch.cos(x.flatten(1) @ self.frequencies.t())
        return out
