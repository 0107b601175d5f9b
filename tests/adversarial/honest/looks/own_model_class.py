"""Has a class named `Model` of its own, which is a part of it and not the reference.

problem: mlp
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Linear):
    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight.t())


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = Model(features, hidden)
        self.down = Model(hidden, features)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))
