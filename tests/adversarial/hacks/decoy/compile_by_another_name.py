"""`torch.compile` under a name in pieces.

problem: elementwise
devices: cpu cuda
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fast = getattr(torch, "com" + "pile")(self.work)

    def work(self, x, y):
        return torch.tanh(F.gelu(x) * torch.sigmoid(y) + x)

    def forward(self, x, y):
        return self.fast(x, y)
