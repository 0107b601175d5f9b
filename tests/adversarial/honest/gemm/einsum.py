"""Written with `einsum`, with an exact GELU by `erf`.

problem: mlp
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, x):
        y = torch.einsum("bi,oi->bo", x, self.up.weight) + self.up.bias
        y = torch.erf(y * 0.7071067811865476).add_(1.0).mul_(y).mul_(0.5)
        return torch.einsum("bi,oi->bo", y, self.down.weight) + self.down.bias
