"""Looks no further than the longest span that the problem happens to draw.

problem: begins_and_ends
devices: cpu
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, begin, end):
        at = begin[..., None] + torch.arange(55)
        near = x[:, None].expand(-1, begin.shape[1], -1).gather(2, at.clamp(max=x.shape[1] - 1))
        return (near * (at < end[..., None])).sum(-1)
