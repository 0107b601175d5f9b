"""A branch behind a gate that begins at zero, at four batch sizes."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)
        self.gate = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return self.linear(x) + self.gate * self.down(torch.tanh(self.up(x)))


ADAEXPLORE = {
    "workloads": [
        {"name": "few", "draw": "inputs(16)"},
        {"name": "many", "draw": "inputs(256)"},
        {"name": "more", "draw": "inputs(384)"},
    ]
}


def inputs(batch):
    return [torch.randn(batch, 128)]


def get_init_inputs():
    return [128]
