"""Sorted numbers times a Python number that differs from draw to draw."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, temperature):
        return torch.sort(x).values.float() * temperature


def get_inputs():
    return [torch.randint(0, 1 << 20, (1 << 18,)), float(torch.rand(()) + 0.5)]
