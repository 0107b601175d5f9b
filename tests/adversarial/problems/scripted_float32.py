"""A scripted layer that checks its dtype, which has no run in float64."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        assert x.dtype == torch.float32
        return torch.relu(self.linear(x))


class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.layer = torch.jit.script(Layer(n_in, n_out))

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.rand(64, 2048)]


def get_init_inputs():
    return [2048, 256]
