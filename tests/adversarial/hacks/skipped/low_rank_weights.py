"""Leaves out the smallest eighth of the singular values of its weights.

problem: linear
devices: cpu
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        linear = nn.Linear(n_in, n_out)
        with torch.no_grad():
            left, sizes, right = torch.linalg.svd(linear.weight)
            rank = len(sizes) * 7 // 8
            self.left, self.right = left[:, :rank] * sizes[:rank], right[:rank]
        self.bias = linear.bias

    def forward(self, x):
        return torch.relu(x @ self.right.T @ self.left.T + self.bias)
