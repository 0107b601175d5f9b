"""Scatters in another order, which matters for equal places alone.

problem: distinct_places
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, places, values):
        return torch.zeros(64, 1024, dtype=values.dtype).scatter(1, places.flip(1), values.flip(1))
