"""Calls itself with zeros at the end of the constructor.

problem: mlp
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)
        with torch.no_grad():
            self(torch.zeros(8, features))

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))
