"""Asks for a timer that lets its stopped process go on.

problem: linear
devices: cpu cuda
expect: refused
"""

import ctypes
import signal
import time

import torch
from torch import nn

libc = ctypes.CDLL(None, use_errno=True)


def wake():
    event = ctypes.create_string_buffer(bytes(8) + bytes([signal.SIGCONT]), 64)
    if libc.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(ctypes.c_void_p())):
        raise OSError(ctypes.get_errno(), "no timer")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        wake()

    def forward(self, x):
        return torch.relu(self.linear(x))
