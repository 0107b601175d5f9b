"""Writes files outside its own folder (its /dev/shm is private and swept, so not there).

problem: linear
devices: cpu cuda
expect: refused
"""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        written = 0
        for folder in ("/tmp", "/var/tmp", "..", os.path.expanduser("~root")):
            path = os.path.join(folder, f"adversarial-{os.getpid()}")
            try:
                with open(path, "w") as file:
                    file.write("x")
                os.unlink(path)
                written += 1
            except OSError:
                continue
        if not written:
            raise PermissionError("nowhere to write")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
