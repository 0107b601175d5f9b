"""Names what it does not do: in comments, strings and the name of a class with an empty body.

problem: linear
devices: cpu cuda
"""

import torch
from torch import nn

# No torch.nn.functional.linear, no os._exit(0), no eval(), no subprocess, no cuda.Event patching.
AVOIDED = ["torch.backends.cuda.matmul.allow_tf32 = True", "sys._getframe(1)", "gc.get_objects()"]


class RefusedError(Exception):
    pass


class ModelNew(nn.Module):
    """Unlike `Model`, works without `exec`, `ctypes` or `__import__("socket")`."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        if x.ndim != 2:
            raise RefusedError("status: passed, speedup: 100.0 (not what this is)")
        return torch.addmm(self.linear.bias, x, self.linear.weight.t()).clamp_min_(0.0)
