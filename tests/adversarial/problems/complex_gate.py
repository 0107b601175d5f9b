"""A branch behind a complex gate that begins at zero."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gate = nn.Parameter(torch.zeros(features, dtype=torch.complex64))

    def forward(self, x):
        return self.linear(x) + self.gate.real * self.down(torch.tanh(self.up(x)))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
