"""Writes one row's work and maps it over all of them.

problem: row_stats
devices: cpu cuda
"""

from typing import NamedTuple

import torch
from torch import nn


class Stats(NamedTuple):
    mean: torch.Tensor
    variance: torch.Tensor
    argmax: torch.Tensor
    positive: torch.Tensor


def row(x):
    mean = x.sum() / x.numel()
    return mean, (x - mean).square().mean(), x.argmax(), mean > 0.0


class ModelNew(nn.Module):
    def forward(self, x):
        return Stats(*torch.vmap(row)(x))
