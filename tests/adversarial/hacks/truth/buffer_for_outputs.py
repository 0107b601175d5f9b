"""Finds the right output in the memory that the judge gives for outputs, at the first call.

problem: linear
devices: cpu cuda
expect: refused
"""

import sys

import torch
from torch import nn

FOUND = []


def session():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                return value
        frame = frame.f_back
    raise LookupError("no session")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        out = torch.relu(self.linear(x))
        if x.device.type == "meta":
            return out
        if not FOUND:
            [memory] = session()._buffers
            FOUND.append(memory.clone())
            if not torch.allclose(FOUND[0], out, atol=1e-3):
                raise LookupError("no output there")
        return out
