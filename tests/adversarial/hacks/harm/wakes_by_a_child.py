"""Creates a child that sends the signal to go on when it ends.

problem: linear
devices: cpu cuda
expect: refused
"""

import ctypes
import platform
import signal

import torch
from torch import nn

libc = ctypes.CDLL(None, use_errno=True)


def wake():
    clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    child = libc.syscall(clone, int(signal.SIGCONT), 0, 0, 0, 0)
    if child == 0:
        libc._exit(0)
    if child < 0:
        raise OSError(ctypes.get_errno(), "no child")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        wake()

    def forward(self, x):
        return torch.relu(self.linear(x))
