"""Replies at once, and passes the turnstile call by call afterwards, each time after almost a second.

The judge would hold the device for minutes past every time limit.

problem: linear
devices: cpu cuda
expect: refused
"""

import os
import sys
import threading
import time

import torch
from torch import nn

AT_GATE, QUEUED, ADMITTED, WAITING, KEY, OPENED, CLOSED, SUM = range(8)
PAUSE_S = 0.9


def session():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                return value
        frame = frame.f_back
    return None


class Slow:
    def __init__(self, worker):
        self.worker, self.true = worker, worker._clock

    def warm(self, call):
        self.true.warm(call)

    def block(self, call, count, sink, ready=None):
        gate, told = self.worker._gate, len(sys._getframe(1).f_locals["addresses"])
        passing = self.on_device if hasattr(gate, "_page") else self.on_host
        threading.Thread(target=passing, args=(gate, count, told), daemon=True).start()
        return [5.0] * count

    def on_device(self, gate, count, told):
        page = gate._page
        for i in range(count):
            page[AT_GATE] = page[QUEUED] = page[WAITING] = i + 1
            while page[OPENED] <= i:
                time.sleep(1e-4)
            time.sleep(PAUSE_S)
            page[CLOSED] = i + 1

    def on_host(self, gate, count, told):
        for _ in range(count):
            time.sleep(PAUSE_S)
            os.write(gate._descriptor, b"?" + bytes(8 * told))
            os.read(gate._descriptor, 8)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.worker = None

    def forward(self, x):
        if self.worker is None:
            self.worker = session()
            if self.worker is not None:
                self.worker._clock = Slow(self.worker)
        return torch.relu(self.linear(x))
