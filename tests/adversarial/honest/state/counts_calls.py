"""Counts its calls and remembers shapes, for a log line now and then.

problem: linear
devices: cpu cuda
"""

import collections
import logging

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)
        self.shapes = collections.Counter()

    def forward(self, x):
        self.calls += 1
        self.shapes[tuple(x.shape)] += 1
        if sum(self.shapes.values()) % 100 == 0:
            logging.getLogger(__name__).warning("shapes so far: %s", self.shapes)
        return torch.relu(self.linear(x))
