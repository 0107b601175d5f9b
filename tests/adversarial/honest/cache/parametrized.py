"""Stores the weight transposed, behind a parametrization that turns it around.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn
from torch.nn.utils import parametrize


class Transposed(nn.Module):
    def forward(self, stored):
        return stored.t()

    def right_inverse(self, weight):
        return weight.t().contiguous()


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        parametrize.register_parametrization(self.linear, "weight", Transposed())

    def forward(self, x):
        return torch.relu(self.linear(x))
