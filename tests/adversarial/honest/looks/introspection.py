"""Uses `inspect`, `gc` and `getattr` for nothing but its own bookkeeping.

problem: matmul
devices: cpu cuda
"""

import gc
import inspect

import torch
from torch import nn


def by_rows(a, b):
    return torch.cat([part @ b for part in a.chunk(2)])


def whole(a, b):
    return torch.mm(a, b)


METHODS = {
    name: globals()[name]
    for name in ("by_rows", "whole")
    if len(inspect.signature(globals()[name]).parameters) == 2
}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        gc.collect()
        self.method = getattr(torch, "no_such_product", METHODS["whole"])

    def forward(self, a, b):
        return self.method(a, b)
