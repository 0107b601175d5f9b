"""A product with a matrix of ones and zeros.

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
        names = torch.arange(self.segments, device=x.device)
        return (names[:, None] == index[None, :]).to(x.dtype) @ x
