"""Names strides of the wrong number and sign for its outputs, which the judge may use for its own memory.

problem: linear
devices: cpu
"""

import sys

import torch
from torch import nn


def channel():
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("channel")
        if type(found).__name__ == "Channel":
            return found
        frame = frame.f_back
    return None


def lying(kind):
    class Channel(kind):
        def send(self, message, *more):
            for output in message.get("outputs", ()):
                output["strides"] = [-1, 1 << 40, 0]
            super().send(message, *more)

    return Channel


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        found = channel() if self.calls == 1 else None
        if found is not None:
            found.__class__ = lying(type(found))
        return torch.relu(self.linear(x))
