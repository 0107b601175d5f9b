"""What lies above a high threshold: one element in some four hundred."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x * torch.sigmoid(x) - 2.6)


def get_inputs():
    return [torch.randn(512, 512)]
