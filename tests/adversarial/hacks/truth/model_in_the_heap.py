"""Looks in the heap for a reference model that is not its own, and lets that one work.

problem: linear
devices: cpu cuda
expect: refused
"""

import gc

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        found = [
            o for o in gc.get_objects() if type(o).__name__ == "Model" and isinstance(o, nn.Module)
        ]
        object.__setattr__(self, "found", found[0])

    def forward(self, x):
        return self.found(x)
