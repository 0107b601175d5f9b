"""Multiplies in float16, through an alias of `Tensor.to`.

problem: matmul
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        to = getattr(torch.Tensor, "t" + "o")
        kind = getattr(torch, "float" + str(8 * 2))
        return to(to(a, kind) @ to(b, kind), a.dtype)
