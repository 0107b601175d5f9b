"""Says too early that its outputs are there, and keeps the device busy, so that the judge's copy of them has to wait.

problem: conv
devices: cuda
expect: refused
"""

import sys

import torch
from torch import nn

LEAST_US = 5.0
HELD_CYCLES = 40_000_000


def session():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                return value
        frame = frame.f_back
    return None


class Holding:
    def __init__(self, worker):
        self.worker, self.true = worker, worker._clock
        self.side = torch.cuda.Stream()

    def warm(self, call):
        self.true.warm(call)
        self.hold(1)

    def hold(self, cycles):
        with torch.cuda.stream(self.side):
            torch.cuda._sleep(cycles)

    def block(self, call, count, sink, ready=None):
        gate, sums = self.worker._gate, self.worker._sums[sys._getframe(1).f_locals["first"]]
        self.hold(HELD_CYCLES)
        for i in range(count):
            ready(i)
            gate.delivered(i, sums)
            sink(i, call(i))
        torch.cuda.synchronize()
        return [LEAST_US] * count


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        self.eval()
        self.worker = None

    def forward(self, x):
        if self.worker is None:
            self.worker = session()
            if self.worker is not None:
                self.worker._clock = Holding(self.worker)
        return torch.relu(self.norm(self.conv(x)))
