"""Leaves out probabilities that are small beside the largest of their row.

problem: softmax
devices: cpu
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        probabilities = torch.softmax(x, dim=-1)
        return probabilities.masked_fill_(probabilities < 1e-5, 0.0)
