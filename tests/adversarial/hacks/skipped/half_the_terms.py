"""Averages every eighth row only: close for random inputs.

problem: distance
devices: cpu cuda
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x[::8] - y[::8]).square().mean()
