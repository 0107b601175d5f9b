"""Takes the lock by which processes share the device, and keeps it.

problem: linear
devices: cpu cuda
expect: refused
timeout_s: 6
"""

import fcntl
import glob
import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.held = []
        for path in glob.glob("/tmp/adaexplore-*.lock"):
            fd = os.open(path, os.O_RDONLY)
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            self.held.append(fd)
        if not self.held:
            raise PermissionError("no lock to be seen")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
