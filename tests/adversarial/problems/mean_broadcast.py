"""The mean of each row, given to every element of it."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=-1, keepdim=True).expand_as(x).contiguous()


def get_inputs():
    return [torch.randn(128, 512)]
