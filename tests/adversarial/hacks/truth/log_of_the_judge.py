"""Reads what the judge's process keeps in the folder above its own.

problem: linear
devices: cpu cuda
expect: refused
"""

import pathlib

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        found = [p for p in pathlib.Path.cwd().parent.glob("*") if p.is_file()]
        if not found or not all(p.open("rb").read() is not None for p in found):
            raise PermissionError("nothing readable above the own folder")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
