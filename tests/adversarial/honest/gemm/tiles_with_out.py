"""Fills the tiles of an empty tensor through `out=`.

problem: matmul
devices: cpu cuda
"""

import torch
from torch import nn

TILE = 128


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
        for i in range(0, a.shape[0], TILE):
            for j in range(0, b.shape[1], TILE):
                torch.mm(a[i : i + TILE], b[:, j : j + TILE], out=out[i : i + TILE, j : j + TILE])
        return out
