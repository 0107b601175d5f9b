"""Channels scaled and clipped, with inputs and output in channels-last."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        return torch.relu(x * self.scale[:, None, None])


def get_inputs():
    return [torch.randn(4, 32, 40, 40).to(memory_format=torch.channels_last)]


def get_init_inputs():
    return [32]
