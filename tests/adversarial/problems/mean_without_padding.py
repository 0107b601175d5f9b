"""Means over tokens, without those that are rows of zeros."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        keep = (x != 0).any(-1, keepdim=True)
        return (x * keep).sum(1) / keep.sum(1).clamp_min(1)


def get_inputs():
    return [torch.randn(32, 256, 128)]
