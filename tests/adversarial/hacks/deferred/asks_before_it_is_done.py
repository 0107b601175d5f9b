"""Lets the device say that the outputs are there once the inputs are: the call is made between two windows.

problem: linear
devices: cuda
expect: refused
"""

import sys

import torch
from torch import nn

LEAST_US = 3.0


def session():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                return value
        frame = frame.f_back
    return None


class Early:
    def __init__(self, worker):
        self.worker, self.true = worker, worker._clock

    def warm(self, call):
        self.true.warm(call)

    def block(self, call, count, sink, ready=None):
        gate, sums = self.worker._gate, self.worker._sums[sys._getframe(1).f_locals["first"]]
        for i in range(count):
            ready(i)
            gate.delivered(i, sums)
            sink(i, call(i))
        torch.cuda.synchronize()
        return [LEAST_US] * count


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.worker = None

    def forward(self, x):
        if self.worker is None:
            self.worker = session()
            if self.worker is not None:
                self.worker._clock = Early(self.worker)
        return torch.relu(self.linear(x))
