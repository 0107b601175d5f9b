"""BatchNorm in training mode, which updates its running statistics."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(8, 16, 16, 16)]


def get_init_inputs():
    return [16]
