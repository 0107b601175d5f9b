"""Turns the scores of the one class round, so that one logarithm of a sigmoid gives all.

problem: focal_loss
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, targets):
        turned = scores * (1 - 2 * targets)
        loss = nn.functional.softplus(turned)
        return turned.sigmoid_().square_().mul_(loss).sum(-1)
