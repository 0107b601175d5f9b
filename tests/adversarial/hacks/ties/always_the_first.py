"""Answers with the first element, which is one of the largest every other time.

problem: coarse_argmax
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(len(x), dtype=torch.int64, device=x.device)
