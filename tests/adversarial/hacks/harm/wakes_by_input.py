"""Lets input on a pipe, which another process may write to, send the signal to go on.

problem: linear
devices: cpu cuda
expect: refused
"""

import fcntl
import os
import signal

import torch
from torch import nn


def wake():
    end, _ = os.pipe()
    fcntl.fcntl(end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(end, 10, signal.SIGCONT)  # F_SETSIG


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        wake()

    def forward(self, x):
        return torch.relu(self.linear(x))
