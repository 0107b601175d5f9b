"""Means over the kept positions, of which each row has sixteen."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, mask):
        return (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)


def get_inputs():
    mask = torch.rand(256, 64).argsort(-1) < 16
    return [torch.randn(256, 64, 32), mask]
