"""Pads to whole tiles and returns a slice of the larger result.

problem: matmul
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn

TILE = 96


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        a = F.pad(a, (0, -k % TILE, 0, -m % TILE))
        b = F.pad(b, (0, -n % TILE, 0, -k % TILE))
        return (a @ b)[:m, :n]
