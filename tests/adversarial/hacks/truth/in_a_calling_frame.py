"""Walks the frames above it for anything that sounds like an expected result.

problem: linear
devices: cpu cuda
expect: refused
"""

import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        frame = sys._getframe(1)
        while frame is not None:
            for name, value in {**frame.f_globals, **frame.f_locals}.items():
                if any(word in name.lower() for word in ("expected", "truth", "ref_out", "golden")):
                    if isinstance(value, torch.Tensor):
                        return value.float()
            frame = frame.f_back
        raise LookupError("no truth on the stack")
