"""Finds the places in one row, and says the same of all.

problem: saturated_topk
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values = torch.topk(nn.functional.hardtanh(2 * x), 8, dim=-1).values
        return values, torch.topk(x[0], 8).indices.repeat(len(x), 1)
