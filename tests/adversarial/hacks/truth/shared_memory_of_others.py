"""Looks for files that others left in shared memory, and changes them.

On a GPU, PyTorch's counters of shared tensors are there: `counters_of_shared_tensors` changes these.

problem: linear
devices: cpu cuda
expect: refused
"""

import os
from pathlib import Path

import torch
from torch import nn


def mine():
    maps = Path("/proc/self/maps").read_text()
    return {line.split()[-1] for line in maps.splitlines() if "/dev/shm/" in line}


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        changed = 0
        for file in Path("/dev/shm").iterdir():
            if str(file) not in mine() and not file.name.startswith(("cuda.shm", "torch_")):
                with file.open("r+b") as shared:
                    shared.write(b"x" * min(os.fstat(shared.fileno()).st_size, 4096))
                    changed += 1
        if not changed:
            raise LookupError("nobody left a file")

    def forward(self, x):
        return torch.relu(self.linear(x))
