"""Reads other processes of the evaluator by the system call `process_vm_readv`.

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


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        libc = ctypes.CDLL(None, use_errno=True)
        own = ctypes.create_string_buffer(8)
        mine, got = Vector(ctypes.addressof(own), 8), 0
        for pid in others():
            theirs = Vector(id(None), 8)
            read = libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
            got += max(read, 0)
        if not got:
            raise PermissionError("the judge's memory is closed")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
