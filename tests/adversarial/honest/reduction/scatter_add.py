"""Adds in place into zeros of its own; on a GPU with atomics, in any order.

problem: segment_sum
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments

    def forward(self, x, index):
        out = x.new_zeros(self.segments, x.shape[1])
        return out.scatter_add_(0, index[:, None].expand_as(x), x)
