"""Returns a named tuple of a type of its own, with the same fields.

problem: row_stats
devices: cpu cuda
"""

import collections

import torch
from torch import nn

Stats = collections.namedtuple("Stats", ["mean", "variance", "argmax", "positive"])


class ModelNew(nn.Module):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0)
        return Stats(mean, variance, x.max(dim=-1).indices, mean.gt(0.0))
