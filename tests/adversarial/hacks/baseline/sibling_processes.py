"""Creates processes that are its siblings, not its children, and keep the cores busy ever after.

problem: linear
devices: cpu
expect: refused
"""

import ctypes
import os
import signal

import torch
from torch import nn

CLONE, CLONE_PARENT = 56, 0x8000


def sibling():
    flags = CLONE_PARENT | signal.SIGCHLD
    return ctypes.CDLL(None).syscall(CLONE, flags, 0, 0, 0, 0)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.siblings = []

    def forward(self, x):
        if not self.siblings:
            for _ in range(2 * os.cpu_count()):
                pid = sibling()
                if pid == 0:
                    while True:
                        pass
                if pid < 0:
                    raise PermissionError("no siblings")
                self.siblings.append(pid)
        return torch.relu(self.linear(x))
