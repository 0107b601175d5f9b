"""A layer that takes float32 alone, and says so."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        assert x.dtype == torch.float32, f"float32 expected, not {x.dtype}"
        if self.linear.weight.dtype != x.dtype:
            raise TypeError("the layer has another dtype than its input")
        return torch.relu(self.linear(x)).to(x.dtype)


def get_inputs():
    return [torch.rand(64, 1024)]


def get_init_inputs():
    return [1024, 128]
