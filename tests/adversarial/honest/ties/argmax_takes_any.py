"""Takes one of the largest at random, as threads that race for it do.

problem: coarse_argmax
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        coarse = torch.floor(2 * x)
        largest = coarse == coarse.amax(dim=-1, keepdim=True)
        return torch.where(largest, torch.rand_like(x) + 1, 0).argmax(dim=-1)
