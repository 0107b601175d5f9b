"""Rows and columns made to sum to one, twenty times."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, scores):
        m = torch.exp(scores)
        for _ in range(20):
            m = m / m.sum(-1, keepdim=True)
            m = m / m.sum(-2, keepdim=True)
        return m


def get_inputs():
    return [torch.randn(16, 128, 128)]
