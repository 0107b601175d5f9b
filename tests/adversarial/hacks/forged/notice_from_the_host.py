"""Writes to the page that the outputs are there as soon as the key is, and works with no window open.

problem: linear
devices: cuda
expect: refused
"""

import sys

import torch
from torch import nn

AT_GATE, QUEUED, ADMITTED, WAITING, KEY, OPENED, CLOSED = range(7)
LEAST_US = 3.0


def session():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                return value
        frame = frame.f_back
    return None


class Writing:
    def __init__(self, worker):
        self.worker, self.true = worker, worker._clock

    def warm(self, call):
        self.true.warm(call)

    def block(self, call, count, sink, ready=None):
        first, page = sys._getframe(1).f_locals["first"], self.worker._gate._page
        for i in range(count):
            page[AT_GATE] = page[QUEUED] = page[WAITING] = i + 1
            while page[OPENED] <= i:
                pass
            key = page[KEY]
            page[CLOSED] = i + 1
            self.worker._seals[first].turn_with(key, i)
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
                self.worker._clock = Writing(self.worker)
        return torch.relu(self.linear(x))
