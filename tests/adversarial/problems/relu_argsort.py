"""The order of each row where half of it is zeros."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.argsort(torch.relu(x), dim=-1)


def get_inputs():
    return [torch.randn(64, 256)]
