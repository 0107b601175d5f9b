"""Doubles the stride in each step, on pairs of a factor and a value.

problem: recurrence
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, gate, x):
        factor = torch.sigmoid(gate)
        value = torch.sigmoid(-gate) * x
        stride, length = 1, x.shape[1]
        while stride < length:
            tail = factor[:, stride:] * value[:, :-stride] + value[:, stride:]
            value = torch.cat([value[:, :stride], tail], dim=1)
            factor = torch.cat(
                [factor[:, :stride], factor[:, stride:] * factor[:, :-stride]], dim=1
            )
            stride *= 2
        return value
