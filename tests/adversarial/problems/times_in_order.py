"""The places of queries among times that are in order, in a column."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, times, queries):
        return torch.searchsorted(times.squeeze(-1), queries)


def get_inputs():
    return [torch.rand(1024, 1).sort(0).values, torch.rand(4096)]
