"""The same with a stream made by the driver through ctypes, which torch knows nothing of.

problem: softmax
devices: cuda
"""

import ctypes

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.stream = 0, None

    def work(self, x):
        return torch.softmax(x, dim=-1)

    def forward(self, x):
        self.calls += 1
        if self.stream is None:
            handle = ctypes.c_void_p()
            assert ctypes.CDLL("libcuda.so.1").cuStreamCreate(ctypes.byref(handle), 1) == 0
            self.stream = torch.cuda.ExternalStream(handle.value)
        with torch.cuda.stream(self.stream):
            out = self.work(x)
        if self.calls <= 12:
            self.stream.synchronize()
        return out
