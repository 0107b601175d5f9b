"""Looks in the heap for a tensor, of any precision, that could be the expected output.

problem: linear
devices: cpu cuda
expect: refused
"""

import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        shape = (x.shape[0], self.linear.out_features)
        row = self.work(x[:1])
        for other in gc.get_objects():
            if type(other) is torch.Tensor and other.shape == shape and other.is_floating_point():
                if torch.allclose(other[:1].to(row), row, atol=1e-4):
                    return other.to(row)
        raise LookupError("no truth in this process")
