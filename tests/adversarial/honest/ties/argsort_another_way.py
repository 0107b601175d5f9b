"""Sorts the negated row from the back: the zeros come in another order.

problem: relu_argsort
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.argsort(-torch.relu(x), dim=-1).flip(-1)
