"""Stays in float32 where the user would take less.

problem: mlp
devices: cpu cuda
precision: half
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))
