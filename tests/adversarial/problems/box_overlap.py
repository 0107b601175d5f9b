"""The share of each pair of boxes that both cover; a box has its corners."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        low = torch.maximum(a[:, None, :2], b[None, :, :2])
        high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        area_a = (a[:, 2:] - a[:, :2]).prod(-1)
        area_b = (b[:, 2:] - b[:, :2]).prod(-1)
        return both / (area_a[:, None] + area_b - both + 1e-3)


def boxes(count):
    corner = torch.rand(count, 2) * 100
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * 50], 1)


def get_inputs():
    return [boxes(256), boxes(192)]
