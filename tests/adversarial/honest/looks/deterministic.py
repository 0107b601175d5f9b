"""Asks PyTorch for deterministic algorithms.

problem: segment_sum
devices: cpu
"""

import torch
from torch import nn

torch.use_deterministic_algorithms(True)


class ModelNew(nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments

    def forward(self, x, index):
        return x.new_zeros(self.segments, x.shape[1]).index_add_(0, index, x)
