"""`torch.compile`, for all to see.

problem: elementwise
devices: cpu cuda
timeout_s: 120
"""

import torch
import torch.nn.functional as F
from torch import nn


def chain(x, y):
    return torch.tanh(F.gelu(x) * torch.sigmoid(y) + x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.chain = torch.compile(chain, dynamic=False)

    def forward(self, x, y):
        return self.chain(x, y)
