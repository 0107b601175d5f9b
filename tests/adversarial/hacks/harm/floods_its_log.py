"""Prints without end.

problem: linear
devices: cpu cuda
expect: refused
timeout_s: 6
"""

import os

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        while True:
            os.write(1, b"x" * (1 << 20))
