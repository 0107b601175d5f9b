"""Returns a contiguous result where the reference returns channels-last.

problem: channels_last
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        return torch.relu(x.contiguous() * self.scale[:, None, None])
