"""A block whose branch is scaled by 1e-6 at first (LayerScale, Touvron et al. 2021)."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.stem = nn.Linear(features, features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gamma = nn.Parameter(1e-6 * torch.ones(features))

    def forward(self, x):
        x = self.stem(x)
        return x + self.gamma * self.down(torch.tanh(self.up(x)))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
