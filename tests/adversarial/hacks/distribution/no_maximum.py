"""Exponentials without the maximum taken off: overflows for large inputs only.

problem: softmax
devices: cpu cuda
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        e = x.exp()
        return e / e.sum(dim=-1, keepdim=True)
