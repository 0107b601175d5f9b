"""Plain work on inputs of a generator that no seed reaches.

problem: unseeded
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0) * 2
