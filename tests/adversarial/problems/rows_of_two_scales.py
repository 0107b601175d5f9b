"""A linear layer without bias on rows of which nearly half are a million times smaller."""

import torch
from torch import nn

ROWS = 500


class Model(nn.Module):
    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def get_inputs():
    x = torch.randn(ROWS, 512)
    x[ROWS * 13 // 25 :] *= 2e-6
    return [x]


def get_init_inputs():
    return [512, 512]
