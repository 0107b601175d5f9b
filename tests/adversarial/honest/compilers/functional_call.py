"""Calls a stateless copy of a module on the meta device with weights of its own.

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
        with torch.device("meta"):
            shell = nn.Sequential(nn.Linear(features, hidden), nn.Linear(hidden, features))
        self.shells = [*shell]

    def forward(self, x):
        up, down = self.shells
        y = torch.func.functional_call(up, dict(self.up.named_parameters()), (x,))
        return torch.func.functional_call(down, dict(self.down.named_parameters()), (F.gelu(y),))
