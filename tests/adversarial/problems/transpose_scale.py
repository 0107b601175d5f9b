"""A transposed batch of matrices, scaled by a row of weights."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return x.transpose(1, 2).contiguous() * self.weight


def get_inputs():
    return [torch.randn(8, 96, 80)]


def get_init_inputs():
    return [96]
