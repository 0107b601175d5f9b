"""Winograd's F(2x2, 3x3): sixteen products for four results instead of 36.

problem: conv2d
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn

B = [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]
G = [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]
A = [[1, 1, 1, 0], [0, 1, -1, -1]]


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
        for name, rows in (("b", B), ("g", G), ("a", A)):
            matrix = torch.tensor(rows, dtype=torch.float32)
            self.register_buffer(name, matrix, persistent=False)

    def forward(self, x):
        n, _, h, w = x.shape
        weight = self.g @ self.conv.weight @ self.g.t()
        tiles = F.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)
        tiles = self.b @ tiles @ self.b.t()
        products = torch.einsum("nchwij,ocij->nohwij", tiles, weight)
        y = self.a @ products @ self.a.t()
        y = y.permute(0, 1, 2, 4, 3, 5).reshape(n, -1, h, w)
        return y + self.conv.bias[:, None, None]
