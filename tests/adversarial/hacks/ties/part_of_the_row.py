"""Looks at half of each row, where there are enough that are clipped.

problem: saturated_topk
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, indices = torch.topk(nn.functional.hardtanh(2 * x[:, :256]), 8, dim=-1)
        return values, indices
