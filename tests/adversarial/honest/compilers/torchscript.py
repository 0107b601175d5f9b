"""Scripts its chain of operations.

problem: elementwise
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


@torch.jit.script
def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.gelu(x) * torch.sigmoid(y) + x)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return chain(x, y)
