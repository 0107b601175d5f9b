"""Reports times so large that their sum is no number any more, which may break the judge.

problem: linear
devices: cpu
"""

import sys

import torch
from torch import nn


def session():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                return value
        frame = frame.f_back
    return None


class Long:
    def __init__(self, honest):
        self.honest = honest

    def warm(self, call):
        self.honest.warm(call)

    def block(self, call, count, sink, ready=None):
        return [1.7e308 for _ in self.honest.block(call, count, sink, ready)]


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.looked = False

    def forward(self, x):
        if not self.looked:
            self.looked = True
            worker = session()
            if worker is not None:
                worker._clock = Long(worker._clock)
        return torch.relu(self.linear(x))
