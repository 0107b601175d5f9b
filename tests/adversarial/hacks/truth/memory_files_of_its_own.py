"""Looks for the right outputs of later inputs in every memory file that its process has mapped.

problem: linear
devices: cpu
expect: refused
"""

import ctypes
import sys

import numpy as np
import torch
from torch import nn

CALLS = []


def session():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ == "CandidateSession":
                return value
        frame = frame.f_back
    raise LookupError("no session")


def memory_files():
    for line in open("/proc/self/maps"):
        place, rights, *_, path = line.split(maxsplit=5) + [""]
        if "memfd" in line and rights.startswith("r"):
            start, end = (int(text, 16) for text in place.split("-"))
            count = (end - start) // 4
            yield np.ctypeslib.as_array((ctypes.c_float * count).from_address(start))


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        CALLS.append(len(CALLS))
        if len(CALLS) == 3:
            later = [known.inputs.args[0] for known in session()._sets[3:]]
            rows = [self.work(each[-1:])[0].numpy() for each in later]
            if not any(self.is_there(row) for row in rows if row.any()):
                raise LookupError("no output there")
        return self.work(x)

    def is_there(self, row):
        at = int(np.argmax(row))
        for memory in memory_files():
            for place in np.flatnonzero(np.abs(memory - row[at]) < 1e-5):
                found = memory[max(place - at, 0) :][: len(row)]
                if len(found) == len(row) and np.allclose(found, row, atol=1e-4):
                    return True
        return False
