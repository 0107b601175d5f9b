"""Returns channels-last, as the reference does.

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
        out = x * self.scale[:, None, None]
        return out.relu_()
