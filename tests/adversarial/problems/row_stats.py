"""Several results of each row, in a named tuple: two floats, an index and a flag."""

from typing import NamedTuple

import torch
from torch import nn


class Stats(NamedTuple):
    mean: torch.Tensor
    variance: torch.Tensor
    argmax: torch.Tensor
    positive: torch.Tensor


class Model(nn.Module):
    def forward(self, x):
        mean = x.mean(dim=-1)
        return Stats(mean, x.var(dim=-1, unbiased=False), x.argmax(dim=-1), mean > 0.0)


def get_inputs():
    return [torch.randn(128, 500)]
