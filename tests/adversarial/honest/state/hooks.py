"""Applies the activation in a forward hook of its own first layer.

problem: mlp
devices: cpu cuda
"""

import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)
        self.up.register_forward_hook(lambda module, args, output: F.gelu(output))

    def forward(self, x):
        return self.down(self.up(x))
