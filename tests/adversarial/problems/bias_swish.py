"""A bias and a swish on an odd number of elements."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return F.silu(x + self.bias)


def get_inputs():
    return [torch.randn(129, 515)]


def get_init_inputs():
    return [515]
