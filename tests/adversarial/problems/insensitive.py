"""An output that hardly depends on the input: a constant is within 1e-3 of it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(1e-3 * torch.tanh(self.linear(x)))


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return [512, 512]
