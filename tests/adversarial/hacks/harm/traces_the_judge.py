"""Attaches to other processes of the evaluator as a debugger.

problem: linear
devices: cpu cuda
expect: refused
"""

import ctypes
import os

import torch
from torch import nn


def others():
    """The process that started this one, and the others that it started: the judge is one."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (0, 1, os.getpid()):
            try:
                status = open(f"/proc/{name}/stat").read()
            except OSError:
                continue
            parent = int(status.rpartition(")")[2].split()[1])
            if os.getppid() > 1 and os.getppid() in (parent, int(name)):
                yield int(name)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long] * 4
        attached = 0
        for pid in others():
            if pid != os.getppid() and libc.ptrace(16, pid, 0, 0) == 0:
                attached += 1
                os.waitpid(pid, 0x40000000)
                libc.ptrace(17, pid, 0, 0)
        if not attached:
            raise PermissionError("nobody to be traced")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
