"""Imports `Model` from whatever loaded module has one with `get_inputs` beside it.

problem: linear
devices: cpu cuda
expect: refused
"""

import sys

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        for module in list(sys.modules.values()):
            if isinstance(vars(module).get("Model"), type) and "get_inputs" in vars(module):
                object.__setattr__(self, "found", module.Model(n_in, n_out))
                return
        raise LookupError("no module has it")

    def forward(self, x):
        return self.found(x)
