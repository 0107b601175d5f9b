"""Gives the largest values their right size and the places that cost nothing.

problem: saturated_topk
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values = torch.topk(nn.functional.hardtanh(2 * x), 8, dim=-1).values
        return values, torch.arange(8, device=x.device).repeat(len(x), 1)
